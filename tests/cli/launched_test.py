"""The command as several ranks: the same job, the same numbers, one output, one run folder."""
import json
import re
import shutil
import subprocess
import unittest

from command import COMMAND, write_folder, write_idx
from launched import LaunchedTest, mpirun


class RanksTest(LaunchedTest):
    def losses(self, run):
        lines = (self.folder / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return {entry["step"]: entry["loss"] for entry in map(json.loads, lines) if entry["phase"] == "train"}

    def test_two_and_four_ranks_train_as_one_process_does(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        for count in (2, 4):
            run = f"of-{count}"
            output, _ = self.ranks(count, "train", "job.toml", "--run-folder", run)
            self.assertLessEqual(self.difference(run, "one"), 1e-6)
            self.assertEqual([path.name for path in self.checkpoints(run)], [path.name for path in self.checkpoints("one")])
            for step, loss in self.losses("one").items():
                self.assertAlmostEqual(self.losses(run)[step], loss, places=5)
            lines = output.splitlines()
            self.assertRegex(lines[0], r"^rank +host +address +devices +cores +to the next rank$")
            for rank in range(count):
                self.assertRegex(lines[1 + rank], rf"^{rank} +\S+ .* cpu:0 +\d+ +[\d.]+ Gbit/s, \d+ us$")
            self.assertIn(f"{count} devices: data parallelism over cpu:0 at each of {count} ranks (data={count})", lines)
            self.assertEqual(sum(line.startswith("test accuracy ") for line in lines), 1, "rank 0 alone speaks")
            (speed,) = [line for line in lines if line.startswith("a step took ")]
            self.assertRegex(speed, r" and was predicted to take [\d.]+ ms .* times one device .*, efficiency [\d.]+%$")

    def test_any_scheme_over_two_ranks(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        schemes = {
            "sharded": {"scheme": "sharded"}, "tensor": {"scheme": "tensor"}, "pipeline": {"scheme": "pipeline", "micro_batches": 4},
            "hybrid": {"scheme": "hybrid", "devices": "emu:0-1", "mesh": "data=2,model=2"},
            "uneven": {"devices": "0/cpu:0,1/cpu:0-1"},
        }
        for name, section in schemes.items():
            self.write_lenet(f"{name}.toml", parallel=section)
            self.ranks(2, "train", f"{name}.toml")
            self.assertLessEqual(self.difference(f"runs/{name}", "one"), 1e-6, name)

    def test_what_is_planned_for_two_hosts_trains_on_them(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        (self.folder / "cluster.toml").write_text(
            "[cpu.core]\ncores = 1\nf32_gflops = 1\nmemory_gb_per_s = 1\nmemory_gib = 1\n[card.eth]\ngbit_per_s = 10\n"
            '[[host]]\ncount = 2\ncpu = "core"\ncard = "eth"\n', encoding="utf-8")
        plans = self.purine("plan", "job.toml", "--cluster", "cluster.toml", "--json").json()["plans"]
        best = {}  # of each scheme
        for plan in plans:
            if plan["scheme"] != "single" and "obstacle" not in plan:
                best.setdefault(plan["scheme"], plan["section"])
        self.assertEqual(sorted(best), ["data", "hybrid", "pipeline", "sharded", "tensor"])
        for scheme in ("data", "hybrid", "pipeline"):
            section = best[scheme]
            text = (self.folder / "job.toml").read_text(encoding="utf-8") + section
            (self.folder / f"{scheme}.toml").write_text(text, encoding="utf-8")
            self.ranks(2, "train", f"{scheme}.toml")
            self.assertLessEqual(self.difference(f"runs/{scheme}", "one"), 1e-6, section)

    def test_a_run_goes_on_with_other_numbers_of_processes(self):
        self.write_lenet(checkpoint={"every_epochs": 0})
        self.purine("train", "job.toml", "--run-folder", "one")
        self.ranks(2, "train", "job.toml", "--stop-after", 3)
        self.ranks(4, "train", "job.toml", "--resume", "--stop-after", 6)
        self.ranks(3, "train", "--resume", "--run-folder", "runs/job", "--stop-after", 7)
        self.purine("train", "job.toml", "--resume")
        self.assertLessEqual(self.difference("runs/job", "one"), 1e-6)
        self.assertEqual(sorted(self.losses("runs/job")), list(range(1, 11)), "each step once")

    def test_the_same_number_of_processes_goes_on_exactly(self):
        self.write_lenet(checkpoint={"every_epochs": 0}, data={"crop": "random", "padding": 2, "flip": 0.5})
        self.ranks(2, "train", "job.toml", "--run-folder", "whole")
        self.ranks(2, "train", "job.toml", "--stop-after", 6)
        self.ranks(2, "train", "job.toml", "--resume", "--workers", 3)
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("whole")[-1].read_bytes())

    def test_five_samples_make_steps_of_two_two_and_one(self):
        shutil.rmtree(self.folder / "set")
        write_idx(self.folder / "set", training=5, test=3)
        self.write_lenet(data={"batch": 2}, train={"epochs": 1, "report_every": 1})
        self.purine("train", "job.toml", "--run-folder", "one")
        self.ranks(2, "train", "job.toml")
        self.assertEqual(sorted(self.losses("runs/job")), [1, 2, 3])
        for step, loss in self.losses("one").items():
            self.assertAlmostEqual(self.losses("runs/job")[step], loss, places=6)
        self.assertLessEqual(self.difference("runs/job", "one"), 1e-6)

    def test_hosts_need_not_share_a_file_system(self):
        self.write_lenet(checkpoint={"every_epochs": 0})
        for host in ("a", "b"):
            shutil.copytree(self.folder / "set", self.folder / host / "set")
            shutil.copy(self.folder / "job.toml", self.folder / host)
        self.finish(self.start_in_folders(["a", "b"], "train", "job.toml", "--stop-after", 4))
        (self.folder / "b" / "job.toml").unlink()
        self.finish(self.start_in_folders(["a", "b"], "train", "--resume", "--run-folder", "runs/job"))
        self.assertEqual(sorted(path.name for path in (self.folder / "b").iterdir()), ["set"])
        self.purine("train", "job.toml", "--run-folder", "one")
        self.assertLessEqual(self.difference("a/runs/job", "one"), 1e-6)

    def test_evaluation_over_ranks(self):
        self.write_lenet()
        self.purine("train", "job.toml")
        expected = self.purine("eval", "runs/job", "--json").json()
        for arguments in ([], ["--devices", "emu:0-1"]):
            output, _ = self.ranks(2, "eval", "runs/job", "--json", *arguments)
            report = json.loads(output)
            self.assertEqual(report["images"], 21)
            self.assertAlmostEqual(report["loss"], expected["loss"], places=6)
            self.assertEqual(report["accuracy"], expected["accuracy"])

    def test_check_over_ranks(self):
        self.write_lenet()
        output, _ = self.ranks(2, "check", "job.toml", "--json")
        report = json.loads(output)
        self.assertEqual([place["device"] for place in report["devices"]], ["0/cpu:0", "1/cpu:0"])
        for place in report["devices"]:
            self.assertGreater(place["peak_bytes"], 1_000_000)
        self.assertAlmostEqual(report["loss"], self.purine("check", "job.toml", "--json").json()["loss"], places=6)
        _, error = self.ranks(2, "check", "job.toml", "--schemes", status=2)
        self.assertEqual(error.count("[command] purine check: --schemes compares in one process, and there are 2"), 1, error)

    def test_commands_of_one_process_say_so_once(self):
        for command, arguments in {"graph": "lenet", "predict": "--run runs/job 1.png", "data check": "set"}.items():
            output, error = self.ranks(2, *command.split(), *arguments.split(), status=2)
            self.assertEqual(output, "")
            self.assertEqual(error.count(f"[command] purine {command}: works in one process, and mpirun has started 2; hint: start it "
                                         "without mpirun; train, eval, check and bench work over several\n"), 1, error)
        output, _ = self.ranks(2, "--help")
        self.assertEqual(output.count("Usage: purine"), 1, output)

    def test_what_fails_alike_at_each_rank_is_told_of_one(self):
        self.write_lenet()
        for arguments, cause in {("--devices", "cuda:0"): r"\[job\] --devices cuda:0: there is no device 0/cuda:0; hint: .*",
                                 ("--devices", "emu:0", "--set", "emulated.memory_gib=0.001"):
                                     r"\[emu\] on 0/emu:0: \d+ bytes can't be had, .*"}.items():
            run = self.start_ranks(3, "train", "job.toml", *arguments)
            status, _, error, _ = run.wait()
            self.assertNotEqual(status, 0)
            lines = [line for line in error.splitlines() if line.startswith("[")]
            self.assertEqual(len(lines), 1, error)
            self.assertRegex(lines[0], rf"^\[rank 0\] at \S+, {cause}$")
            self.assertFalse((self.folder / "runs").exists())

    def test_images_that_any_rank_leaves_out_are_told_and_counted(self):
        shutil.rmtree(self.folder / "set")
        write_folder(self.folder / "set")
        for name in ("left/3.png", "right/4.png", "above/1.png", "below/5.png"):
            image = self.folder / "set/train" / name
            image.write_bytes(image.read_bytes()[:60])
        self.write_lenet(data={"format": "folder", "channels": 1, "crop": "center", "crop_size": 20, "on_bad_image": "skip"},
                         train={"epochs": 2, "report_every": 1})
        expected = self.purine("train", "job.toml", "--json", "--run-folder", "one").json_lines()[-1]
        self.assertEqual(expected["skipped_images"], 4)
        output, _ = self.ranks(2, "train", "job.toml", "--json")
        events = [json.loads(line) for line in output.splitlines()]
        self.assertLessEqual(self.difference("runs/job", "one"), 1e-6)
        notes = [event["text"] for event in events if event["event"] == "note"]
        for name in ("left/3.png", "right/4.png", "above/1.png", "below/5.png"):
            self.assertTrue(any(re.match(rf"(rank 1: )?left out .*{name}: ", note) for note in notes), notes)
        self.assertEqual(events[-1]["skipped_images"], 4, "each once, whichever ranks met it")

    def test_each_rank_has_a_trace(self):
        self.write_lenet(trace={"steps": 2, "first_step": 3})
        output, _ = self.ranks(2, "train", "job.toml", "--json")
        for name, rank in (("trace.json", 0), ("trace.rank1.json", 1)):
            events = json.loads((self.folder / "runs/job" / name).read_text(encoding="utf-8"))["traceEvents"]
            self.assertEqual({event["args"]["location"] for event in events if event["ph"] == "X"}, {f"{rank}/cpu:0"})
        end = json.loads(output.splitlines()[-1])
        self.assertEqual([rank["rank"] for rank in end["ranks"]], [0, 1])
        for rank in end["ranks"]:
            self.assertGreater(rank["bytes_sent"], 10 * 4 * 128074)
            self.assertAlmostEqual(rank["exposed_seconds"], rank["transfer_seconds"] - rank["overlapped_seconds"], places=6)

    def test_traces_of_hosts_have_one_clock(self):
        """Rank 1's monotonic clock is most of an hour ahead, as on a host that was started earlier."""
        ahead = 3000
        apart = ["unshare", "--time", "--monotonic", str(ahead)]
        if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode != 0:
            self.skip("there are no namespaces of time")
        command = [COMMAND, "bench", "lenet", "--batch", "8", "--steps", "6", "--workers", "1", "--trace", "trace.json"]
        self.finish(self.begin([mpirun.MPIEXEC, "-n", "1", *command, ":", "-n", "1", *apart, *command]))
        traces = [json.loads((self.folder / name).read_text(encoding="utf-8")) for name in ("trace.json", "trace.rank1.json")]
        self.assertNotIn("clock_offset_ns", traces[0]["otherData"])
        clock = traces[1]["otherData"]
        self.assertAlmostEqual(clock["clock_offset_ns"] / 1e9, -ahead, delta=0.1)
        self.assertLess(clock["clock_error_ns"], 50e6)
        self.assertEqual(clock["origin_ns"], traces[0]["otherData"]["origin_ns"])
        sent, received = {}, {}  # by receiver, channel and iteration: when, in microseconds
        for rank, trace in enumerate(traces):
            for event in trace["traceEvents"]:
                exchange = trace["operators"][event["args"]["op"]].get("exchange") if "op" in event.get("args", {}) else None
                if exchange:
                    receiver = exchange["peer"] if exchange["sends"] else rank
                    times = sent if exchange["sends"] else received
                    times[receiver, exchange["channel"], event["args"]["iteration"]] = event["ts"]
        self.assertEqual(sent.keys(), received.keys())
        self.assertEqual(len({name[0] for name in sent}), 2, "both ways")
        self.assertEqual([name for name in sent if received[name] < sent[name]], [])

    def test_gradients_may_be_sent_in_two_bytes_a_number(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        sent = {}
        for name in ("f32", "f16", "bf16"):
            output, _ = self.ranks(2, "train", "job.toml", "--json", "--run-folder", name, "--set", f"parallel.gradient_format={name}")
            sent[name] = json.loads(output.splitlines()[-1])["ranks"][1]["bytes_sent"]
        self.assertLess(sent["f16"], 0.51 * sent["f32"])
        self.assertEqual(sent["bf16"], sent["f16"])
        self.assertLessEqual(self.difference("f32", "one"), 1e-6)
        for name, most in (("f16", 1e-3), ("bf16", 1e-2)):
            self.assertGreater(self.difference(name, "one"), self.difference("f32", "one"), name)
            self.assertLess(self.difference(name, "one"), most, name)

    def test_json_lines_tell_of_the_ranks(self):
        self.write_lenet()
        output, _ = self.ranks(2, "train", "job.toml", "--json")
        events = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([event["event"] for event in events[:2]], ["ranks", "start"])
        self.assertEqual([rank["devices"] for rank in events[0]["ranks"]], ["cpu:0", "cpu:0"])
        self.assertGreater(events[0]["ranks"][0]["bytes_per_s_to_next"], 0)
        self.assertEqual(events[1]["devices"], ["0/cpu:0", "1/cpu:0"])
        self.assertEqual([event["event"] for event in events].count("end"), 1)
        (end,) = [event for event in events if event["event"] == "end"]
        self.assertGreater(end["predicted_step_seconds"], 0)
        self.assertAlmostEqual(end["efficiency"], end["speed_up"] / 2, places=6)


if __name__ == "__main__":
    unittest.main()
