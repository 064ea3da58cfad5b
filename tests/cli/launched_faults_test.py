"""Faults of one rank of several: all processes end in time, one line says why, and the run goes on from its checkpoint."""
import json
import os
import re
import resource
import shutil
import signal
import time
import unittest

import launched
from command import write_folder
from launched import LaunchedTest

LEAVE = signal.SIGRTMIN  # what faults.cpp does at these signals
PAUSE = signal.SIGRTMIN + 1
# From the fault to the end of all, at most: the stall limit, the farewell of 2 s, and a busy machine.
IN_TIME = 20


class FaultsTest(LaunchedTest):
    def setUp(self):
        super().setUp()
        self.with_faults = {"LD_PRELOAD": launched.FAULTS}

    def write_endless(self, **sections):
        sections.setdefault("checkpoint", {"every_epochs": 0, "every_steps": 5})
        sections.setdefault("parallel", {"stall_limit": 2})
        return self.write_lenet(train={"steps": 100000, "report_every": 1, "evaluate_every": 0}, **sections)

    def start(self, ranks=3, step=12):
        """A run that has done some steps."""
        run = self.start_ranks(ranks, "train", "job.toml", "--json", environment=self.with_faults)
        run.wait_for_step(step)
        return run

    def expect_failure(self, run, begin, *lines, status=None):
        found, output, error, _ = run.wait()
        self.assertLess(time.monotonic() - begin, IN_TIME)
        self.assertNotEqual(found, 0, output + error)
        if status is not None:
            self.assertEqual(found, status, error)
        self.assertEqual(run.rank_processes(), {}, "all processes have ended")
        for line in lines:
            self.assertRegex(error, re.compile(line, re.MULTILINE))
        return output, error

    def own_lines(self, error):
        """The lines of the ranks among those of mpirun."""
        return [line for line in error.splitlines() if re.match(r"\[[a-z0-9 ]+\] ", line)]

    def expect_to_go_on(self, ranks=3, again=("job.toml",)):
        """The same command with --resume goes on, to the bytes of a run that nothing disturbed."""
        last = max(int(path.stem.removeprefix("step-")) for path in self.checkpoints("runs/job"))
        self.assertGreaterEqual(last, 5)
        end = last + 3
        self.ranks(ranks, "train", *again, "--resume", "--stop-after", end)
        self.ranks(ranks, "train", *again, "--run-folder", "undisturbed", "--stop-after", end)
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("undisturbed")[-1].read_bytes())

    def test_a_killed_rank(self):
        self.write_endless()
        run = self.start()
        os.kill(run.rank_processes()[1], signal.SIGKILL)
        # mpirun sees it first, and ends the others.
        self.expect_failure(run, time.monotonic(), r"(rank 1 .* signal 9|^\[rank 1\] at |KILLED BY SIGNAL: 9)")
        self.expect_to_go_on()

    def test_others_tell_of_a_killed_rank_where_mpirun_lets_them(self):
        self.write_endless()
        self.with_faults["OMPI_MCA_odls_base_sigkill_timeout"] = "5"
        run = self.start()
        os.kill(run.rank_processes()[1], signal.SIGKILL)
        _, error = self.expect_failure(run, time.monotonic(), r"^\[rank 1\] at \S+, silent for longer than 2 s; .* \((after )?step \d+\)$")
        self.assertEqual(len(self.own_lines(error)), 1, error)

    def test_a_rank_that_exits_with_status_0(self):
        self.write_endless()
        run = self.start()
        os.kill(run.rank_processes()[1], LEAVE)
        self.expect_failure(run, time.monotonic(), r"(rank 1 |^\[rank 1\] at )")
        self.expect_to_go_on()

    def test_a_rank_that_stops(self):
        self.write_endless()
        run = self.start()
        os.kill(run.rank_processes()[1], signal.SIGSTOP)
        _, error = self.expect_failure(
            run, time.monotonic(), r"^\[rank 1\] at \S+, silent for longer than 2 s; the process is stopped or gone, or the "
            r"network is down(; 0/cpu:0 waited at \S+ for (\S+ from rank \d|rank \d to take \S+))? \((after )?step \d+\)$")
        self.assertEqual(len(self.own_lines(error)), 1, error)
        self.expect_to_go_on()

    def test_rank_0_stops(self):
        self.write_endless()
        run = self.start()
        os.kill(run.rank_processes()[0], signal.SIGSTOP)
        _, error = self.expect_failure(run, time.monotonic(), r"^\[rank 0\] at \S+, silent for longer than 2 s; .* \((after )?step \d+\)$")
        self.assertEqual(len(self.own_lines(error)), 1, error)
        self.expect_to_go_on()

    def test_a_rank_that_stops_and_goes_on_in_time(self):
        self.write_endless(parallel={"stall_limit": 20})
        run = self.start()
        process = run.rank_processes()[1]
        os.kill(process, signal.SIGSTOP)
        time.sleep(2)
        steps = max(event["step"] for event in run.events() if event["event"] == "progress")
        os.kill(process, signal.SIGCONT)
        run.wait_for_step(steps + 20)
        os.kill(process, signal.SIGINT)
        self.expect_saved(run, status=130)
        self.expect_to_go_on()

    def test_a_slow_rank_is_waited_for(self):
        self.write_endless()
        # Of three ranks, rank 0 may wait for one that itself waits for the slow one.
        run = self.start(ranks=2)
        os.kill(run.rank_processes()[1], PAUSE)
        while not (notes := [event["text"] for event in run.events() if event["event"] == "note"]):
            self.assertIsNone(run.process.poll(), run.text(run.error))
            time.sleep(0.1)
        self.assertRegex(notes[0], r"^waiting for \d+ s for rank 1 at \S+, which lives(, to send \S+)?$")
        steps = max(event["step"] for event in run.events() if event["event"] == "progress")
        run.wait_for_step(steps + 20)
        os.kill(run.rank_processes()[0], signal.SIGINT)
        self.expect_saved(run, status=130)
        self.expect_to_go_on(ranks=2)

    def write_hosts(self, *names):
        """Folders with the job and the data, as hosts have them that share no file system."""
        for name in names:
            shutil.copytree(self.folder / "set", self.folder / name / "set")
            shutil.copy(self.folder / "job.toml", self.folder / name)

    def expect_before_the_first_step(self, line, status=None):
        run = self.start_in_folders(["a", "b"], "train", "job.toml")
        output, error = self.expect_failure(run, time.monotonic(), line, status=status)
        self.assertEqual(len(self.own_lines(error)), 1, error)
        self.assertNotIn("epoch", output)
        self.assertFalse((self.folder / "a/runs/job").exists())

    def test_a_file_that_is_missing_on_one_host(self):
        self.write_endless()
        self.write_hosts("a", "b")
        labels = self.folder / "b/set/t10k-labels-idx1-ubyte"
        labels.rename(self.folder / "b/labels")
        self.expect_before_the_first_step(r"^\[rank 1\] at \S+, \[job\] job.toml:\d+: data.folder .*t10k-labels", status=2)
        (self.folder / "b/labels").rename(labels)
        (self.folder / "b/job.toml").unlink()
        self.expect_before_the_first_step(r"^\[rank 1\] at \S+, .*job.toml", status=2)

    def test_ranks_with_different_jobs_or_data(self):
        self.write_endless()
        self.write_hosts("a", "b")
        job = self.folder / "b/job.toml"
        text = job.read_text(encoding="utf-8")
        job.write_text(text.replace("every_steps = 5", "every_steps = 6"), encoding="utf-8")
        self.expect_before_the_first_step(r"^\[job\] rank 0 has checkpoint.every_steps = 5, rank 1 has checkpoint.every_steps = 6; "
                                          r"hint: start all processes with the same job$", status=2)
        job.write_text(text, encoding="utf-8")
        shutil.copy(self.folder / "a/set/t10k-labels-idx1-ubyte", self.folder / "labels")
        labels = bytearray((self.folder / "labels").read_bytes())
        labels[-1] ^= 1
        (self.folder / "b/set/t10k-labels-idx1-ubyte").write_bytes(labels)
        self.expect_before_the_first_step(r"^\[session\] rank 0 has a test set of identity \w+, rank 1 has a test set of identity \w+;")

    def test_a_mistake_in_the_job_is_said_once(self):
        self.write_endless(data={"batch": 64})
        self.write_hosts("a", "b")
        self.expect_before_the_first_step(r"^\[job\] job.toml:\d+: data.batch is 64, and the training set has only 29 images",
                                          status=2)

    def test_an_operator_that_fails_at_one_rank(self):
        shutil.rmtree(self.folder / "set")
        write_folder(self.folder / "set")
        self.write_endless(data={"format": "folder", "channels": 1, "crop": "center", "crop_size": 20})
        self.write_hosts("a", "b")
        image = self.folder / "b/set/train/left/3.png"
        content = image.read_bytes()
        image.write_bytes(content[:-40] + b"\0" * 20 + content[-20:])
        run = self.start_in_folders(["a", "b"], "train", "job.toml")
        _, error = self.expect_failure(run, time.monotonic(), r"^\[rank 1\] at \S+, \[.*left/3.png.* \(step \d+\)", status=1)
        self.assertEqual(len(self.own_lines(error)), 1, error)
        image.write_bytes(content)
        self.finish(self.start_in_folders(["a", "b"], "train", "job.toml", "--resume", "--stop-after", 40))
        self.ranks(2, "train", "job.toml", "--stop-after", 40)
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("a/runs/job")[-1].read_bytes())

    def test_a_full_disk(self):
        self.write_endless()
        run = self.start()
        process = run.rank_processes()[0]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (400_000, 400_000))
        _, error = self.expect_failure(run, time.monotonic(),
                                       r"^\[rank 0\] at \S+, \[.*step-\d+.safetensors: cannot write: File too large", status=1)
        self.assertEqual(len(self.own_lines(error)), 1, error)
        self.expect_to_go_on()

    def expect_saved(self, run, status=None):
        found, output, error, _ = run.wait()
        self.assertNotEqual(found, 0)
        if status is not None:
            self.assertEqual(found, status, error)
        self.assertEqual(self.own_lines(error), [])
        (end,) = [event for event in run.events() if event["event"] == "end"]
        self.assertEqual(end["end"], "interrupted", output)
        self.assertEqual(self.checkpoints("runs/job")[-1].name, f"step-{end['step']:08}.safetensors")

    def test_an_interrupt_of_one_rank_saves_and_ends_all(self):
        self.write_endless()
        run = self.start()
        os.kill(run.rank_processes()[2], signal.SIGINT)
        self.expect_saved(run, status=130)
        self.expect_to_go_on()

    def test_ctrl_c_at_mpirun_saves_and_ends_all(self):
        self.write_endless()
        self.with_faults["OMPI_MCA_odls_base_sigkill_timeout"] = "5"  # a busy machine takes longer than a second
        run = self.start()
        run.process.send_signal(signal.SIGINT)
        status, _, error, _ = run.wait()
        self.assertNotEqual(status, 0)
        self.assertEqual(self.own_lines(error), [])
        # mpirun passes nothing on any more, so that it isn't read what the ranks say at their end.
        seen = max(event["step"] for event in run.events() if event["event"] == "progress")
        self.assertGreaterEqual(int(self.checkpoints("runs/job")[-1].stem.removeprefix("step-")), seen)
        self.expect_to_go_on()

    def test_a_signal_that_mpirun_passes_on_saves_and_ends_all(self):
        self.write_endless()
        run = self.start()
        run.process.send_signal(signal.SIGUSR1)
        self.expect_saved(run, status=130)
        self.expect_to_go_on()


if __name__ == "__main__":
    unittest.main()
