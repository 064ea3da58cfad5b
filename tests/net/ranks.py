"""Starts a test's ranks with mpirun, and ends them whatever happens."""
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

RANK = os.environ["PURINE_NET_RANK"]
MPIEXEC = os.environ["PURINE_MPIEXEC"]
LIMIT = 150  # seconds; what takes longer hangs

# More ranks than cores, none bound to a core, as root as well.
ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
# MPI itself leaves memory behind when it ends, and takes its locks in several orders.
for variable, setting in (("ASAN_OPTIONS", "detect_leaks=0"), ("TSAN_OPTIONS", "detect_deadlocks=0")):
    ENVIRONMENT[variable] = ":".join(filter(None, [os.environ.get(variable), setting]))
TCP = {"OMPI_MCA_btl": "tcp,self"}  # what carries messages between hosts


class Run:
    """The ranks while they run."""

    def __init__(self, command, environment):
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.error = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.begin = time.monotonic()
        # In a session of its own: everything that mpirun starts can be ended with it.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.error,
                                        env=os.environ | ENVIRONMENT | environment, start_new_session=True)
        self.timer = threading.Timer(LIMIT, self.kill)
        self.timer.start()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def text(self, file):
        # The ranks write at the end of the same file, which reading must not move.
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace")

    def rank_process(self, rank):
        """The process of a rank, as soon as it has said it."""
        while self.process.poll() is None:
            found = re.search(rf"^rank {rank} of \d+ is process (\d+) ", self.text(self.output), re.MULTILINE)
            if found:
                return int(found[1])
            time.sleep(0.01)
        raise AssertionError("the ranks have ended\n" + self.text(self.error))

    def wait(self):
        """Waits for the end: status, standard output, standard error and seconds since the start."""
        status = self.process.wait()
        self.timer.cancel()
        result = status, self.text(self.output), self.text(self.error), time.monotonic() - self.begin
        self.kill()
        return result


class RanksTest(unittest.TestCase):
    """Skipped where there is no MPI; with PURINE_REQUIRE_NETWORK in the environment that is a failure."""

    def skip(self, reason):
        if os.environ.get("PURINE_REQUIRE_NETWORK"):
            self.fail(reason)
        self.skipTest(reason)

    def setUp(self):
        if not MPIEXEC:
            self.skip("this build has no MPI")

    def start(self, ranks, *arguments, environment=None):
        run = Run([MPIEXEC, "-n", str(ranks), RANK, *arguments], environment or {})
        self.addCleanup(run.output.close)
        self.addCleanup(run.error.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def run_ranks(self, ranks, *arguments, environment=None):
        return self.start(ranks, *arguments, environment=environment).wait()
