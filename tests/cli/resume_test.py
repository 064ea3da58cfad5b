"""Runs that end before their end, and go on."""
import json
import resource
import signal
import subprocess
import unittest

from command import COMMAND, CommandTest, write_idx


class ResumeTest(CommandTest):
    def setUp(self):
        super().setUp()
        write_idx(self.folder / "set")

    def write_long_job(self, steps, **checkpoint):
        # Momentum, dropout, a schedule over the run, warm-up and augmentation are all on.
        self.write_job(data={"crop": "random", "padding": 2, "flip": 0.5},
                       train={"steps": steps, "report_every": 1, "evaluate_every": 0},
                       checkpoint={"every_epochs": 0, **checkpoint})

    def reference(self):
        """The last checkpoint of the run that nothing stopped."""
        self.purine("train", "job.toml", "--run-folder", "reference")
        return self.checkpoints("reference")[-1].read_bytes()

    def run_until(self, step):
        """Starts the run and returns it when this many steps are done."""
        process = self.start("train", "job.toml", "--json")
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["step"] >= step:
                return process
        self.fail(process.stderr.read())

    def test_four_steps_and_six_are_ten(self):
        self.write_long_job(10)
        reference = self.reference()
        for step in (4, 8, 9):  # within the first epoch, at its end, after the first step of the second
            for workers in (1, 2, 4):
                run = f"run-{step}-{workers}"
                self.purine("train", "job.toml", "--stop-after", step, "--run-folder", run, "--workers", workers)
                self.purine("train", "job.toml", "--resume", "--run-folder", run, "--workers", workers)
                self.assertEqual(self.checkpoints(run)[-1].read_bytes(), reference, run)

    def test_stopping_where_it_was_already_does_nothing(self):
        self.write_long_job(10)
        self.purine("train", "job.toml", "--stop-after", 6)
        before = self.checkpoints("runs/job")
        result = self.purine("train", "job.toml", "--resume", "--stop-after", 4)
        self.assertIn("going on after step 6 in runs/job\nstopped after step 6, as asked\n", result.output)
        self.assertEqual(self.checkpoints("runs/job"), before)

    def test_the_epochs_means_go_on_too(self):
        self.write_long_job(16)
        self.reference()
        self.purine("train", "job.toml", "--stop-after", 5)
        self.purine("train", "--resume", "--run-folder", "runs/job")

        def epochs(run):
            lines = (self.folder / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            entries = [json.loads(line) for line in lines]
            return ([(entry["step"], entry["loss"], entry["accuracy"]) for entry in entries if entry["phase"] == "epoch"],
                    [entry["step"] for entry in entries if entry["phase"] == "train"])
        self.assertEqual(epochs("runs/job"), epochs("reference"))

    def test_an_interrupted_run_is_saved_and_goes_on(self):
        self.write_long_job(300)
        process = self.run_until(20)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, output + error)
        events = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(events[-2]["end"], "interrupted")
        self.assertEqual(events[-1]["text"], "go on with: purine train --resume --run-folder runs/job")
        self.assertEqual(self.checkpoints("runs/job")[-1].name, f"step-{events[-2]['step']:08}.safetensors")
        self.purine("train", "--resume", "--run-folder", "runs/job")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.reference())

    def test_a_second_interrupt_ends_at_once(self):
        self.write_long_job(3000, every_steps=5)
        process = self.run_until(10)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(signal_number)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.purine("eval", "runs/job")  # whatever was saved last is whole

    def test_a_killed_run_goes_on_from_its_last_checkpoint(self):
        self.write_long_job(300, every_steps=7)
        process = self.run_until(30)
        process.kill()
        process.wait()
        self.assertFalse((self.folder / "runs/job/checkpoints/step-00000300.safetensors").exists())
        events = self.purine("train", "job.toml", "--resume", "--json").json_lines()
        self.assertEqual(events[0]["first_step"] % 7, 0)
        self.assertGreaterEqual(events[0]["first_step"], 28)
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.reference())
        steps = [json.loads(line)["step"]
                 for line in (self.folder / "runs/job/metrics.jsonl").read_text(encoding="utf-8").splitlines()
                 if '"train"' in line]
        self.assertEqual(steps, list(range(1, 301)), "each step once")

    def test_whatever_ends_a_run_leaves_its_trace_whole(self):
        self.write_long_job(3000)
        # After the traced steps, and within them; a process that is killed within them has written none yet.
        for steps, end, whole in ((3, signal.SIGKILL, True), (2900, signal.SIGKILL, False), (2900, signal.SIGTERM, True)):
            process = self.start("train", "job.toml", "--json", "--set", f"trace.steps={steps}", "--set", "trace.first_step=2",
                                 "--run-folder", f"runs/{steps}-{end}")
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "progress" and event["step"] >= 40:
                    break
            process.send_signal(end)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -signal.SIGKILL if end == signal.SIGKILL else 130)
            trace = self.folder / f"runs/{steps}-{end}/trace.json"
            self.assertEqual(trace.exists(), whole)
            if whole:
                json.loads(trace.read_text(encoding="utf-8"))
                self.assertRegex(self.purine("why", trace).output, "^A step takes ")

    def test_a_run_killed_before_its_first_checkpoint_starts_anew(self):
        self.write_long_job(300)
        process = self.run_until(2)
        process.kill()
        process.wait()
        result = self.purine("train", "job.toml", "--resume", "--set", "train.steps=300", "--stop-after", 5)
        self.assertIn("there is no checkpoint yet, the run starts at its beginning\n", result.output)

    def test_a_complete_run_is_left_as_it_is(self):
        self.write_long_job(4)
        first = self.purine("train", "job.toml", "--json").json_lines()[-1]
        metrics = (self.folder / "runs/job/metrics.jsonl").read_bytes()
        start, note, again = self.purine("train", "job.toml", "--resume", "--json").json_lines()
        self.assertEqual((start["event"], note["event"], again["end"]), ("start", "note", "finished"))
        for key in ("step", "test_accuracy", "test_loss", "checkpoint"):
            self.assertEqual(again[key], first[key])
        self.assertEqual((first["trained_steps"], again["trained_steps"]), (4, 0))
        text = self.purine("train", "job.toml", "--resume").output
        self.assertIn("\nthe run is complete: all of its 4 steps were done before, and nothing is left to train\n"
                      "test accuracy  ", text)
        self.assertEqual((self.folder / "runs/job/metrics.jsonl").read_bytes(), metrics)

    def test_more_epochs_may_be_added(self):
        self.write_job(optimizer={"schedule": "constant"})
        self.purine("train", "job.toml", "--set", "train.epochs=1")
        self.purine("train", "job.toml", "--resume", "--set", "train.epochs=3")
        self.purine("train", "job.toml", "--set", "train.epochs=3", "--run-folder", "whole")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("whole")[-1].read_bytes())

    def test_a_changed_job_is_refused(self):
        self.write_long_job(8)
        self.purine("train", "job.toml", "--stop-after", 2)
        before = self.checkpoints("runs/job")[-1].read_bytes()
        self.assertEqual(self.error_of("train", "job.toml", "--resume", "--set", "optimizer.momentum=0.5", status=2),
                         "[job] --set optimizer.momentum=0.5: optimizer.momentum was 0.9 when the run was started, and is "
                         "0.5 now; hint: resume with the same value, or start another run in another run folder")
        self.assertIn("[job] --seed 9: train.seed was 1 when ",
                      self.error_of("train", "job.toml", "--resume", "--seed", "9", status=2))
        self.assertIn("the cosine schedule ends with the run",
                      self.error_of("train", "job.toml", "--resume", "--set", "train.steps=9", status=2))
        write_idx(self.folder / "other", training=64)
        self.assertIn("data.folder holds another training set than the run was started with",
                      self.error_of("train", "job.toml", "--resume", "--set", "data.folder=other", status=2))
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), before)

    def test_a_data_set_that_was_moved_is_the_same(self):
        self.write_long_job(6)
        reference = self.reference()
        self.purine("train", "job.toml", "--stop-after", 2)
        (self.folder / "set").rename(self.folder / "moved")
        self.purine("train", "job.toml", "--resume", "--set", "data.folder=moved")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), reference)

    def test_a_damaged_checkpoint_is_named_and_refused(self):
        self.write_long_job(8, every_steps=2)
        self.purine("train", "job.toml", "--stop-after", 4)
        newest = self.checkpoints("runs/job")[-1]
        content = bytearray(newest.read_bytes())
        content[len(content) // 2] ^= 1
        newest.write_bytes(content)
        error = self.error_of("train", "job.toml", "--resume", status=1)
        self.assertIn("runs/job/checkpoints/step-00000004.safetensors", error)
        self.assertIn("runs/job/checkpoints/step-00000002.safetensors", error)
        newest.unlink()
        self.purine("train", "job.toml", "--resume")

    def test_a_full_disk_leaves_the_older_checkpoint_whole(self):
        self.write_long_job(8, every_steps=2)
        self.purine("train", "job.toml", "--stop-after", 2)
        (older,) = self.checkpoints("runs/job")
        before = older.read_bytes()

        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))
        process = subprocess.run([COMMAND, "train", "job.toml", "--resume"], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, check=False, preexec_fn=limit_files,
                                 restore_signals=False)
        self.assertEqual(process.returncode, 1, process.stdout + process.stderr)
        self.assertEqual(process.stderr.count("\n"), 1)
        self.assertIn("runs/job/checkpoints/step-00000004.safetensors: cannot write: File too large", process.stderr)
        self.assertEqual(self.checkpoints("runs/job"), [older])
        self.assertEqual(older.read_bytes(), before)
        self.purine("train", "job.toml", "--resume")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.reference())

    def test_two_processes_do_not_write_one_run(self):
        self.write_long_job(2000)
        process = self.run_until(1)
        self.assertEqual(self.error_of("train", "job.toml", "--resume", status=2),
                         "[run folder] runs/job: is being written by another process; hint: wait for it, or end it")
        process.kill()


if __name__ == "__main__":
    unittest.main()
