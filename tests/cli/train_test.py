"""Training runs from the command line, from beginning to end."""
import array
import json
import os
import re
import resource
import shlex
import signal
import struct
import subprocess
import unittest

import event_file
from command import CLASSES, COMMAND, CommandTest, write_folder, write_idx


class TrainTest(CommandTest):
    def test_trains_and_says_where_everything_lies(self):
        write_idx(self.folder / "set")
        self.write_job(trace={"first_step": 3, "steps": 2})
        result = self.purine("train", "job.toml", "--workers", "2")
        run = self.folder / "runs" / "job"
        lines = result.output.splitlines()
        self.assertIn("job: small_convnet with ", lines[0])
        self.assertIn("; 60 training and 20 test images of 1 x 20 x 20, 4 classes", lines[0])
        self.assertTrue(lines[1].startswith("16 steps, 8 an epoch, of 8 images; momentum, learning rate 0.02; 2 workers, "))
        self.assertRegex(result.output, r"\nepoch 1/2  step 4/16  loss \d\.\d{4}  accuracy \d+\.\d%  [\d,.]+ images/s  "
                                        r"[\d.:]+( s)? left  \d+% waiting for data\n")
        self.assertRegex(result.output, r"\nepoch 2/2: training loss \d\.\d{4}, accuracy \d+\.\d\d%, ")
        self.assertRegex(result.output, r"\ntest accuracy  \d+\.\d\d% of 20 images \(loss \d\.\d{4}\)\n")
        self.assertNotIn("\r", result.output, "no bar without a terminal")
        self.assertEqual(lines[-4:], [
            "checkpoint     runs/job/checkpoints/step-00000016.safetensors",
            "metrics        runs/job/metrics.jsonl",
            "TensorBoard    runs/job/events",
            "trace          runs/job/trace.json"])
        self.assertTrue((run / "job.toml").exists())
        self.assertEqual(len(list((run / "events").iterdir())), 1)
        self.assertEqual([path.name for path in self.checkpoints(run)],
                         ["step-00000008.safetensors", "step-00000016.safetensors"])

        metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual([(entry["step"], entry["phase"]) for entry in metrics],
                         [(4, "train"), (8, "train"), (8, "epoch"), (8, "test"), (12, "train"), (16, "train"),
                          (16, "epoch"), (16, "test")])
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])
        self.assertGreaterEqual(metrics[-1]["accuracy"], 0.9)

        events = [event for event in json.loads((run / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
                  if event["ph"] == "X"]
        self.assertEqual({event["args"]["iteration"] for event in events}, {3, 4})
        self.assertIn("small_convnet/block1/conv/conv2d", {event["name"] for event in events})

    def test_the_event_file_holds_the_metrics(self):
        """Read back by its format's description, not by the code that wrote it."""
        write_idx(self.folder / "set")
        self.write_job()
        self.purine("train", "job.toml", "--stop-after", "12")
        self.purine("train", "job.toml", "--resume")
        run = self.folder / "runs" / "job"
        keys = {"train": ["loss", "accuracy", "learning_rate", "images_per_s", "data_wait"], "epoch": ["loss", "accuracy"],
                "test": ["loss", "accuracy", "top5"]}
        expected = []
        for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            expected += [(entry["step"], f"{entry['phase']}/{key}", struct.unpack("f", struct.pack("f", entry[key]))[0])
                         for key in keys[entry["phase"]] if key in entry]
        self.assertEqual({step for step, _, _ in expected}, {4, 8, 12, 16})
        found = [scalar for path in sorted((run / "events").iterdir()) for scalar in event_file.scalars(path)]
        self.assertEqual(sorted(found), sorted(expected))

    def test_a_terminal_shows_a_bar(self):
        write_idx(self.folder / "set")
        self.write_job()
        text, error = self.on_terminal("stdout", "train", "job.toml")
        self.assertEqual(error, "")
        bars = re.findall(r"\r(epoch [^\r\033]*)\033\[K", text)
        self.assertTrue(bars, text)
        self.assertRegex(bars[0], r"^epoch 1/2 \[=*> *\] step 1/16  loss \d\.\d{4}  accuracy \d+\.\d%  .* images/s  .* left  "
                                  r"\d+% waiting for data$")
        self.assertLess(max(map(len, bars)), 130)
        self.assertNotIn("\nepoch 1/2  step", text, "the bar takes the place of lines")
        self.assertIn("\ntest accuracy  ", text)

    def run_unread(self, name, arguments, **streams):
        """Runs the job, with these streams, to its end; returns the last checkpoint's bytes."""
        process = subprocess.run([COMMAND, "train", "job.toml", "--run-folder", name, *arguments], cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **streams)
        self.assertEqual((process.returncode, process.stderr), (0, ""), name)
        return self.checkpoints(name)[-1].read_bytes()

    def test_training_goes_on_when_nobody_reads(self):
        write_idx(self.folder / "set")
        self.write_job(train={"report_every": 1})
        self.purine("train", "job.toml")
        reference = self.checkpoints("runs/job")[-1].read_bytes()
        for name, arguments in (("text", []), ("json", ["--json"])):
            reader, writer = os.pipe()
            os.close(reader)  # as `purine train job.toml | head -1` does, sooner or later
            self.assertEqual(self.run_unread(name, arguments, stdout=writer), reference)
            os.close(writer)
        # A stream that is closed from the start is not mixed up with the run's files.
        self.assertEqual(self.run_unread("closed", [], preexec_fn=lambda: os.close(1)), reference)
        for line in (self.folder / "closed" / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            json.loads(line)

    def test_training_goes_on_when_its_output_cannot_be_written(self):
        write_idx(self.folder / "set")
        self.write_job()
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = subprocess.run([COMMAND, "train", "job.toml"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=full,
                                     stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((process.returncode, process.stderr),
                         (1, "[output] standard output cannot be written: No space left on device; hint: the run itself is "
                             "well, and lies in runs/job\n"))
        self.assertEqual(self.checkpoints("runs/job")[-1].name, "step-00000016.safetensors")

    def test_training_goes_on_when_its_trace_cannot_be_written(self):
        write_idx(self.folder / "set")
        self.write_job()
        self.purine("train", "job.toml", "--stop-after", 2)
        trace = self.folder / "runs/job/trace-from-step-2.json"
        trace.symlink_to(trace)
        error = self.error_of("train", "job.toml", "--resume", "--set", "trace.steps=1", "--set", "trace.first_step=2", status=1)
        self.assertRegex(error, r"^\[file\] runs/job/trace-from-step-2.json: cannot look at the file: .*; "
                                r"hint: the run itself is well, and lies in runs/job$")
        self.assertEqual(self.checkpoints("runs/job")[-1].name, "step-00000016.safetensors")

    def test_training_ends_well_when_its_report_cannot_be_written(self):
        write_idx(self.folder / "set")
        self.write_job(trace={"steps": 2, "first_step": 3})
        self.purine("train", "job.toml", "--stop-after", 2)
        (self.folder / "runs/job/report.html").mkdir()
        process = self.purine("train", "job.toml", "--resume", "--report", status=1)
        self.assertRegex(process.error, r"^\[file\] runs/job/report.html: is not a regular file, .*; the run itself is well, and "
                                        r"lies in runs/job\n$")
        self.assertIn("\ntest accuracy  ", process.output)
        self.assertEqual(self.checkpoints("runs/job")[-1].name, "step-00000016.safetensors")

    def test_training_goes_on_when_its_metrics_cannot_be_written(self):
        """As on a full disk: a limit that checkpoints are below of, and these metrics, of a run that began so, are not."""
        write_idx(self.folder / "set")
        self.write_job(train={"report_every": 1})
        self.purine("train", "job.toml", "--run-folder", "reference")
        reference = self.checkpoints("reference")[-1].read_bytes()
        limit = 2 * len(reference)
        self.purine("train", "job.toml", "--stop-after", 2)
        metrics = self.folder / "runs/job/metrics.jsonl"
        begun = json.dumps({"step": 0, "text": "x" * limit}) + "\n"
        metrics.write_text(begun, encoding="utf-8")
        result = self.purine("train", "job.toml", "--resume", "--json", status=1, restore_signals=False, preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        cause = "[file] runs/job/metrics.jsonl: cannot write: File too large"
        notes = [line["text"] for line in result.json_lines() if line["event"] == "note"]
        self.assertEqual(notes, ["the run goes on, but not all of its metrics are on the disk: " + cause])
        end = result.json_lines()[-1]
        self.assertEqual((end["end"], end["metrics_are_complete"], end["events_are_complete"]), ("finished", False, True))
        self.assertEqual(result.error, cause + "; hint: the run itself is well, and lies in runs/job\n")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), reference)
        self.assertEqual(metrics.read_text(encoding="utf-8"), begun)

    def test_a_run_folder_may_have_any_name(self):
        write_idx(self.folder / "set")
        self.write_job(trace={"steps": 2, "first_step": 1})
        for name in ("a \"b\"\\", "a\nb", "-x", "\u00fc \u65e5", os.fsdecode(b"not \xff UTF-8")):
            lines = self.purine("train", "job.toml", f"--run-folder={name}", "--stop-after", 3, "--json").json_lines()
            (end,) = [line for line in lines if line["event"] == "end"]
            self.assertEqual(end["run_folder"], name.encode(errors="surrogateescape").decode(errors="replace"))
            output = self.purine("train", "--resume", f"--run-folder={name}", "--stop-after", 5, errors="replace").output
            if "\n" not in name and name.isprintable():  # a command to copy goes on
                command = re.search(r"^go on with: purine (.*)$", output, re.MULTILINE).group(1)
                self.purine(*shlex.split(command))
            else:
                self.purine("train", "--resume", f"--run-folder={name}", errors="replace")
            report = self.purine("eval", f"./{name}", "--json").json()
            self.assertEqual(report["step"], 16)
            json.loads((self.folder / name / "trace.json").read_text(encoding="utf-8"))
            self.purine("report", f"./{name}", errors="replace")

    def test_a_full_trace_says_so(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 40, "epochs": 10}, trace={"steps": 40, "first_step": 0, "megabytes": 1})
        result = self.purine("train", "job.toml", "--devices", "emu:0-3")
        self.assertRegex(result.output, r"\nthe trace is full: the latest \d+ events are left out; trace.megabytes is 1\n")
        trace = self.folder / "runs/job/trace.json"
        self.assertLessEqual(trace.stat().st_size, 1_000_000)
        self.assertGreater(len(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]), 1000)

    def test_an_epochs_means_weigh_every_sample_alike(self):
        write_idx(self.folder / "set", training=20)  # two batches of 8 and one of 4
        self.write_job(train={"epochs": 1, "report_every": 1})
        self.purine("train", "job.toml")
        metrics = [json.loads(line) for line in
                   (self.folder / "runs/job/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        steps = [entry for entry in metrics if entry["phase"] == "train"]
        (epoch,) = [entry for entry in metrics if entry["phase"] == "epoch"]
        for name in ("loss", "accuracy"):
            mean = sum(entry[name] * size for entry, size in zip(steps, (8, 8, 4))) / 20
            self.assertAlmostEqual(epoch[name], mean, places=12)

    def test_a_run_folder_that_exists_is_left_alone(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 2})
        self.purine("train", "job.toml")
        before = {path: path.read_bytes() for path in (self.folder / "runs").rglob("*") if path.is_file()}
        self.assertEqual(self.error_of("train", "job.toml", status=2),
                         "[run folder] runs/job: exists already; hint: go on with its run (--resume), or take another "
                         "folder (--new-run, --run-folder)")
        self.purine("train", "job.toml", "--new-run")
        self.purine("train", "job.toml", "--run-folder", "elsewhere/here")
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        for folder in ("runs/job-2", "elsewhere/here"):
            self.assertEqual(self.checkpoints(folder)[0].read_bytes(), self.checkpoints("runs/job")[0].read_bytes())

    def test_any_number_of_workers_gives_the_same_bytes(self):
        write_idx(self.folder / "set")
        self.write_job(data={"crop": "random", "padding": 2, "flip": 0.5}, train={"steps": 12})
        for workers in (1, 2, 4):
            self.purine("train", "job.toml", "--workers", workers, "--run-folder", f"run-{workers}")
        reference = self.checkpoints("run-1")[-1].read_bytes()
        for workers in (2, 4):
            self.assertEqual(self.checkpoints(f"run-{workers}")[-1].read_bytes(), reference)

    def test_how_workers_share_operators_is_told_and_changes_no_byte(self):
        write_idx(self.folder / "set")
        self.write_job(data={"batch": 32}, train={"steps": 4})
        told = {}
        for how in ("auto", "side_by_side", "divided"):
            output = self.purine("train", "job.toml", "--workers", 2, "--run-folder", how, "--set", f"train.scheduling={how}").output
            told[how] = output.splitlines()[2]
        self.assertRegex(told["side_by_side"], r"^whole operators side by side; predicted of operators in up to \d parts: \d+\.\d\d times "
                                               r"as long, of the batch divided over cpu:0-1: \d+\.\d\d times$")
        self.assertRegex(told["divided"], r"^operators in up to \d parts; predicted of whole operators side by side: \d+\.\d\d times "
                                          r"as long, of the batch divided over cpu:0-1: \d+\.\d\d times$")
        self.assertIn(told["auto"], (told["side_by_side"], told["divided"]))
        reference = self.checkpoints("auto")[-1].read_bytes()
        for how in ("side_by_side", "divided"):
            self.assertEqual(self.checkpoints(how)[-1].read_bytes(), reference)
        events = self.purine("train", "job.toml", "--workers", 1, "--run-folder", "one", "--json").json_lines()
        self.assertEqual(events[0]["scheduling"]["candidates"], [], "one worker has nothing to choose")
        self.assertEqual(self.error_of("train", "job.toml", "--set", "train.scheduling=side_by_sid", status=2).split(": ", 1)[1],
                         'train.scheduling must be one of auto, side_by_side, divided; got "side_by_sid"; '
                         'hint: did you mean "side_by_side"?')

    def test_the_seed_decides_the_result(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 3})
        for name, seed in (("a", 5), ("b", 5), ("c", 6)):
            self.purine("train", "job.toml", "--seed", seed, "--run-folder", name)
        a, b, c = (self.tensors(self.checkpoints(name)[-1])[0] for name in "abc")
        self.assertEqual(a, b)
        self.assertEqual(a.keys(), c.keys())
        self.assertNotEqual(a, c)

    def test_the_last_checkpoints_are_kept(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 10}, checkpoint={"every_steps": 2, "every_epochs": 0, "keep": 2})
        self.purine("train", "job.toml")
        self.assertEqual([path.name for path in self.checkpoints("runs/job")],
                         ["step-00000008.safetensors", "step-00000010.safetensors"])

    def test_json_lines_tell_every_event(self):
        write_idx(self.folder / "set")
        self.write_job()
        events = self.purine("train", "job.toml", "--json").json_lines()
        self.assertEqual([event["event"] for event in events],
                         ["start"] + ["progress", "progress", "epoch", "test", "checkpoint"] * 2 + ["end"])
        self.assertEqual(events[0]["steps"], 16)
        self.assertEqual(events[0]["steps_per_epoch"], 8)
        self.assertGreater(events[0]["peak_bytes"], 4 * events[0]["parameters"])
        self.assertEqual(events[-1]["end"], "finished")
        self.assertEqual(events[-1]["test_accuracy"], events[-3]["accuracy"])
        self.assertEqual(events[-1]["checkpoint"], "runs/job/checkpoints/step-00000016.safetensors")

    def test_every_optimizer_and_schedule_learns(self):
        write_idx(self.folder / "set")
        self.write_job(train={"epochs": 3})
        for name, rate, schedule in (("sgd", 0.05, "constant"), ("nesterov", 0.02, "step"), ("adam", 0.002, "polynomial"),
                                     ("adamw", 0.002, "cosine")):
            events = self.purine("train", "job.toml", "--json", "--run-folder", name, "--set", f"optimizer.name={name}",
                                 "--set", f"optimizer.learning_rate={rate}", "--set", f"optimizer.schedule={schedule}",
                                 "--set", "optimizer.clip_norm=5",
                                 "--set", "optimizer.weight_decay=1e-4").json_lines()
            self.assertGreaterEqual(events[-1]["test_accuracy"], 0.75, name)

    def test_evaluates_what_was_trained(self):
        write_idx(self.folder / "set", test=21)  # the last batch of 8 has 5
        self.write_job(train={"epochs": 1})
        trained = self.purine("train", "job.toml", "--json").json_lines()[-1]
        for arguments in (["runs/job"], ["job.toml"], ["job.toml", "--checkpoint", trained["checkpoint"]],
                          ["runs/job", "--set", "data.evaluation_batch=5", "--workers", "1"]):
            report = self.purine("eval", *arguments, "--json").json()
            self.assertEqual(report["accuracy"], trained["test_accuracy"])
            self.assertAlmostEqual(report["loss"], trained["test_loss"], places=5)
            self.assertEqual(report["images"], 21)
            self.assertEqual(report["step"], 8)
        text = self.purine("eval", "runs/job").output
        self.assertIn(f"test accuracy  {100 * trained['test_accuracy']:.2f}% of 21 images", text)

    def test_an_emulated_device_gives_the_same_weights(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 4})
        self.purine("train", "job.toml", "--run-folder", "cpu")
        self.purine("train", "job.toml", "--run-folder", "emu", "--devices", "emu:0")
        self.assertEqual(self.tensors(self.checkpoints("emu")[-1])[0], self.tensors(self.checkpoints("cpu")[-1])[0])

    def test_a_broken_image_ends_the_run_or_is_left_out(self):
        write_folder(self.folder / "set")
        broken = self.folder / "set" / "train" / CLASSES[1] / "3.png"
        broken.write_bytes(broken.read_bytes()[:60])
        self.write_job(data={"format": "folder", "crop": "center", "crop_size": 20, "channels": 1}, train={"epochs": 2})
        result = self.purine("train", "job.toml", status=1)
        self.assertIn(f"set/train/{CLASSES[1]}/3.png", result.error)
        result = self.purine("train", "job.toml", "--new-run", "--set", "data.on_bad_image=skip")
        self.assertEqual(result.output.count("left out set/train/"), 1)
        self.assertIn("\n1 broken image was left out\n", result.output)

    def test_weights_that_diverge_in_the_last_step_are_an_error(self):
        write_idx(self.folder / "set")
        self.write_job(optimizer={"name": "sgd", "learning_rate": 1e30, "schedule": "constant", "warmup_epochs": 0},
                       train={"epochs": 1, "steps": 1})
        self.assertEqual(self.error_of("train", "job.toml", status=1),
                         "[evaluation] the test loss after step 1 is not finite; hint: the weights have diverged: "
                         "train with a lower optimizer.learning_rate, a longer optimizer.warmup_epochs, or gradient "
                         "clipping (optimizer.clip_norm)")

    def test_weights_that_are_not_finite_are_not_saved(self):
        """Loss and gradients of the step are finite; what the update makes of them is not."""
        write_idx(self.folder / "set")
        self.write_job(optimizer={"name": "sgd", "learning_rate": 1e39, "schedule": "constant", "warmup_epochs": 0})
        self.assertRegex(self.error_of("train", "job.toml", "--stop-after", 1, status=1),
                         r"^\[training\] step 1: small_convnet/\S+ is not finite after the update, so it was not saved; hint: "
                         r"training has diverged: try a lower optimizer\.learning_rate, ")
        self.assertEqual(self.checkpoints("runs/job"), [])

    def test_a_loss_that_is_not_finite_stops_the_run(self):
        write_idx(self.folder / "set")
        self.write_job(optimizer={"name": "sgd", "learning_rate": 1e30, "schedule": "constant", "warmup_epochs": 0},
                       train={"steps": 20}, checkpoint={"every_steps": 1})
        result = self.purine("train", "job.toml", status=1)
        self.assertEqual(result.error.count("\n"), 1)
        self.assertRegex(result.error, r"^\[training\] step 2: the (loss|gradient of small_convnet/\S+) is (NaN|-?infinity)\b.*, "
                                       r"so the step was not taken; hint: training has diverged: try a lower "
                                       r"optimizer\.learning_rate, a longer optimizer\.warmup_epochs, or gradient clipping "
                                       r"\(optimizer\.clip_norm\)\n$")
        self.assertIn("the run failed; its newest checkpoint is runs/job/checkpoints/step-", result.output)
        for path in self.checkpoints("runs/job"):
            for name, content in self.tensors(path)[0].items():
                values = array.array("f", content)
                self.assertTrue(all(value - value == 0 for value in values), f"{path.name} {name} is not finite")


if __name__ == "__main__":
    unittest.main()
