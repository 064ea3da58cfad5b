"""Runs the command as the ranks of one run, started by mpirun."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import mpirun
from command import COMMAND, CommandTest, write_idx

FAULTS = os.environ.get("PURINE_FAULTS", "")
MARK = "PURINE_TEST_RUN"  # in the environment of a run's processes, to know them by


def read_environment(process):
    try:
        entries = pathlib.Path("/proc", process, "environ").read_bytes().split(b"\0")
        return dict(entry.decode(errors="replace").split("=", 1) for entry in entries if b"=" in entry)
    except OSError:  # it is gone
        return {}


class Run(mpirun.Run):
    """The ranks while they run; standard output has JSON lines."""

    def __init__(self, command, environment, folder):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        super().__init__(command, environment | {MARK: self.mark}, folder)

    def rank_processes(self):
        """The numbers of the ranks' processes, by rank."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            environment = read_environment(entry.name)
            if environment.get(MARK) != self.mark or "OMPI_COMM_WORLD_RANK" not in environment:
                continue
            try:
                if os.path.samefile(entry / "exe", COMMAND):
                    found[int(environment["OMPI_COMM_WORLD_RANK"])] = int(entry.name)
            except OSError:
                continue
        return found

    def events(self):
        lines = self.text(self.output).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def wait_for_step(self, step):
        """Waits until so many steps are done, by what `--json` prints with `train.report_every` = 1."""
        while self.process.poll() is None:
            if any(event["event"] == "progress" and event["step"] >= step for event in self.events()):
                return
            time.sleep(0.02)
        raise AssertionError("the run has ended\n" + self.text(self.output) + self.text(self.error))


class LaunchedTest(CommandTest):
    """Skipped where there is no MPI; with PURINE_REQUIRE_NETWORK in the environment that is a failure."""

    def skip(self, reason):
        if os.environ.get("PURINE_REQUIRE_NETWORK"):
            self.fail(reason)
        self.skipTest(reason)

    def setUp(self):
        super().setUp()
        if not mpirun.MPIEXEC:
            self.skip("this build has no MPI")
        write_idx(self.folder / "set", training=29, test=21)

    def write_lenet(self, name="job.toml", **sections):
        """A job whose data of 29 images make steps of 8, 8, 8 and 5."""
        sections.setdefault("train", {"steps": 10, "report_every": 1})
        rule = {"name": "momentum", "learning_rate": 0.01, "schedule": "constant", "warmup_epochs": 0,
                **sections.pop("optimizer", {})}
        return self.write_job(name, model={"name": "lenet"}, optimizer=rule, **sections)

    def begin(self, command, environment=None):
        run = Run(command, environment or {}, self.folder)
        for cleanup in (run.output.close, run.error.close, run.wait, run.kill):
            self.addCleanup(cleanup)
        return run

    def start_ranks(self, ranks, *arguments, environment=None):
        return self.begin([mpirun.MPIEXEC, "-n", str(ranks), COMMAND, *map(str, arguments)], environment)

    def start_in_folders(self, folders, *arguments, environment=None):
        """One rank in each of the folders: what a host has and another one has not."""
        command = [mpirun.MPIEXEC]
        for folder in folders:
            command += [] if len(command) == 1 else [":"]
            command += ["-n", "1", "--wdir", str(self.folder / folder), COMMAND, *map(str, arguments)]
        return self.begin(command, environment)

    def ranks(self, count, *arguments, status=0, environment=None):
        """Runs so many ranks; standard output and standard error."""
        return self.finish(self.start_ranks(count, *arguments, environment=environment), status)

    def finish(self, run, status=0):
        found, output, error, _ = run.wait()
        self.assertEqual(found, status, output + error)
        return output, error
