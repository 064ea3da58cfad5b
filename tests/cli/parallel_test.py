"""Jobs on several devices: every scheme from the job file, resuming from one to another, and `purine check`."""
import json
import unittest

from command import CommandTest, write_idx

SCHEMES = {
    "data": {"scheme": "data", "devices": "emu:0-2"},
    "ring": {"scheme": "data", "devices": "cpu:0-1", "all_reduce": "ring"},
    "one_each": {"scheme": "data", "devices": "emu:0-1", "update": "one_each"},
    "shares": {"scheme": "data", "devices": "emu:0-1", "shares": [3, 1]},
    "sharded": {"scheme": "sharded", "devices": "emu:0-3"},
    "tensor": {"scheme": "tensor", "devices": "emu:0-1"},
    "layers": {"scheme": "tensor", "devices": "emu:0-1", "output_layers": ["lenet/conv1"], "input_layers": ["lenet/conv2"]},
    "grid": {"scheme": "tensor", "devices": "emu:0-3", "mesh": "data=2,model=2"},
    "hybrid": {"scheme": "hybrid", "devices": "cpu:0,emu:0-1"},
    "hybrid_grid": {"scheme": "hybrid", "devices": "emu:0-3", "mesh": "data=2,model=2"},
    "pipeline": {"scheme": "pipeline", "devices": "emu:0-2", "micro_batches": 4},
    "pipelines": {"scheme": "pipeline", "devices": "emu:0-3", "mesh": "data=2,stage=2"},
}
STEPS = 4


class ParallelTest(CommandTest):
    def setUp(self):
        super().setUp()
        write_idx(self.folder / "set", training=29, test=21)  # the last batch of 8 has 5

    def write_lenet(self, name="job.toml", **sections):
        sections.setdefault("train", {"steps": STEPS, "report_every": 1})
        rule = {"name": "sgd", "learning_rate": 0.05, "schedule": "constant", "warmup_epochs": 0,
                **sections.pop("optimizer", {})}
        return self.write_job(name, model={"name": "lenet"}, optimizer=rule, **sections)

    def test_every_scheme_trains_as_one_device_does(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        expected = self.purine("eval", "one", "--json").json()
        for name, section in SCHEMES.items():
            self.write_lenet(f"{name}.toml", parallel=section)
            result = self.purine("train", f"{name}.toml")
            run = f"runs/{name}"
            self.assertLessEqual(self.difference(run, "one"), STEPS * 1e-6, name)
            self.assertRegex(result.output, r"\n[234] devices: .* over (cpu|emu):")
            self.assertRegex(result.output, r"\n[\d.,]+ images/s in training over all [234] devices, ")
            # The run folder's job has the devices, so evaluation has them too; its own can be named.
            for options in ([], ["--devices", "cpu:0"]):
                report = self.purine("eval", run, "--json", *options).json()
                self.assertAlmostEqual(report["loss"], expected["loss"], places=5, msg=name)
                self.assertEqual(report["scheme"], "single" if options else section["scheme"])
            last = json.loads((self.folder / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
            self.assertAlmostEqual(last["loss"], expected["loss"], places=5, msg=name)

    def test_four_steps_and_six_are_ten_in_every_scheme(self):
        for name in ("data", "one_each", "sharded", "grid", "hybrid", "pipelines"):
            self.write_job(f"{name}.toml", model={"name": "lenet"}, parallel=SCHEMES[name],
                           data={"crop": "random", "padding": 2}, train={"steps": 10}, checkpoint={"every_epochs": 0})
            self.purine("train", f"{name}.toml", "--run-folder", "whole")
            self.purine("train", f"{name}.toml", "--stop-after", 6)
            self.purine("train", f"{name}.toml", "--resume", "--workers", 5)
            self.assertEqual(self.checkpoints(f"runs/{name}")[-1].read_bytes(), self.checkpoints("whole")[-1].read_bytes())
            (self.folder / "whole").rename(self.folder / f"whole-{name}")

    def test_a_run_goes_on_in_another_scheme(self):
        names = ["tensor", "sharded", "pipelines", "hybrid_grid", "one_each", "pipeline", "data"]
        for name in names:
            self.write_lenet(f"{name}.toml", parallel=SCHEMES[name], optimizer={"name": "momentum", "learning_rate": 0.01},
                             train={"steps": 3 * len(names), "run_folder": "run"}, checkpoint={"every_epochs": 0})
        for i, name in enumerate(names):
            self.purine("train", f"{name}.toml", *(["--resume"] if i else []), "--stop-after", 3 * (i + 1))
        self.write_lenet("job.toml", optimizer={"name": "momentum", "learning_rate": 0.01}, train={"steps": 3 * len(names)})
        self.purine("train", "job.toml", "--run-folder", "one")
        self.assertLessEqual(self.difference("run", "one"), 3 * len(names) * 1e-6)
        # Back on one device, for a last time.
        self.purine("train", "job.toml", "--run-folder", "run", "--resume", "--set", "train.steps=22")
        self.purine("train", "job.toml", "--run-folder", "one", "--resume", "--set", "train.steps=22")
        self.assertLessEqual(self.difference("run", "one"), 22 * 1e-6)

    def test_several_devices_alone_are_data_parallelism(self):
        self.write_lenet()
        events = self.purine("train", "job.toml", "--devices", "emu:0-1", "--json").json_lines()
        self.assertEqual((events[0]["scheme"], events[0]["devices"]), ("data", ["0/emu:0", "0/emu:1"]))
        self.write_lenet("same.toml", parallel={"scheme": "data", "devices": "emu:0-1", "mesh": "data=2"})
        self.purine("train", "same.toml")
        self.assertEqual(self.weights("runs/same"), self.weights("runs/job"))
        self.assertIn("\n2 devices: data parallelism over emu:0-1 (data=2)\n",
                      self.purine("train", "job.toml", "--devices", "emu:0-1", "--new-run").output)

    def test_batch_normalization_is_per_device_or_synchronized(self):
        self.write_job(train={"steps": 3}, optimizer={"name": "sgd", "schedule": "constant", "warmup_epochs": 0})
        self.purine("train", "job.toml", "--run-folder", "one")
        for name, value in (("own", "false"), ("all", "true")):
            self.purine("train", "job.toml", "--run-folder", name, "--devices", "emu:0-1", "--set",
                        f"parallel.synchronized_batch_normalization={value}")
        self.assertGreater(self.difference("own", "one"), 1e-4)
        self.assertLess(self.difference("all", "one"), 3e-6)

    def test_emulated_devices_are_as_the_job_says(self):
        self.write_lenet(parallel={"devices": "emu:0-1"}, trace={"steps": 1, "first_step": 1})
        self.purine("train", "job.toml", "--set", "emulated.copy_us=20000")
        trace = json.loads((self.folder / "runs/job/trace.json").read_text(encoding="utf-8"))
        copies = [event["dur"] for event in trace["traceEvents"]
                  if event["ph"] == "X" and trace["operators"][event["args"]["op"]]["type"] == "copy"]
        self.assertGreater(len(copies), 6)
        self.assertGreaterEqual(min(copies), 20000)
        self.assertRegex(self.error_of("train", "job.toml", "--new-run", "--set", "emulated.memory_gib=0.001", status=1),
                         r"^\[emu\] on 0/emu:0: \d+ bytes can't be had, \d+ of 1077248 are free; hint: use a smaller batch or "
                         r"model, or give the device more memory in RuntimeOptions::emulated, or emulated.memory_gib$")

    def test_mistakes_are_told_before_anything_runs(self):
        def mistake(**section):
            self.write_lenet(parallel=section)
            return self.error_of("train", "job.toml", status=2)

        self.assertRegex(mistake(scheme="dta", devices="emu:0-1"),
                         r'^\[job\] job.toml:\d+: parallel.scheme must be one of auto, single, data, .*; got "dta"; '
                         r'hint: did you mean "data"\?$')
        self.assertRegex(mistake(devices="emu:0-1", mesh="data=3"),
                         r"^\[job\] job.toml:\d+: parallel.mesh data=3 needs 3 locations, 2 are given; "
                         r"hint: left empty, it has all devices along the axis data$")
        self.assertRegex(mistake(scheme="tensor", devices="emu:0-1", output_layers=["lenet/conv3"]),
                         r"^\[job\] job.toml:\d+: parallel.output_layers names 'lenet/conv3': there is no layer "
                         r"'lenet/conv3' with a weight; hint: did you mean 'lenet/conv1'\?$")
        self.assertEqual(mistake(devices="cuda:0-1").split(": ", 1)[1],
                         "there is no device 0/cuda:0; hint: this build has cpu and emu devices")
        self.assertFalse((self.folder / "runs").exists())

    def test_check_compares_all_schemes(self):
        self.write_lenet()
        report = self.purine("check", "job.toml", "--schemes", "--json").json()
        self.assertEqual(report["devices"], [f"0/emu:{i}" for i in range(4)])
        self.assertEqual((report["steps"], report["passed"]), (3, True))
        tried = {(result["scheme"], result["mesh"], result["details"]) for result in report["schemes"]}
        self.assertEqual(tried, {
            ("data", "data=4", ""), *(("data", "data=4", f'all_reduce = "{name}"')
                                      for name in ("central", "sharded", "ring", "tree")),
            ("data", "data=4", 'update = "one_each"'), ("sharded", "data=4", ""),
            ("tensor", "model=4", ""), ("tensor", "data=2,model=2", ""),
            ("hybrid", "data=4", ""), ("hybrid", "data=2,model=2", ""),
            ("pipeline", "stage=4", ""), ("pipeline", "data=2,stage=2", "")})
        for result in report["schemes"]:
            self.assertTrue(result["replicas_are_equal"])
            self.assertAlmostEqual(result["tolerance"], 3e-6, places=12)
            self.assertLessEqual(result["largest_difference"], 3e-6)
        for devices in ("cpu:0-1", "emu:0-2"):
            text = self.purine("check", "job.toml", "--schemes", "--devices", devices, "--steps", "1").output
            self.assertIn("tensor   model=", text)
            self.assertNotIn("too much", text)
        self.assertFalse((self.folder / "runs").exists())

    def test_check_fails_past_the_tolerance(self):
        # Steps so large that rounding grows many times in each.
        self.write_lenet()
        text = self.purine("check", "job.toml", "--schemes", "--steps", "8", "--devices", "emu:0-1",
                           "--set", "optimizer.learning_rate=0.2", status=1).output
        self.assertRegex(text, r"\ndata     data=2 +\d\.\de-\d\d of \d\.\de-\d\d  too much, at lenet/")

    def test_check_in_double_precision_has_no_rounding_to_speak_of(self):
        self.write_lenet()
        report = self.purine("check", "job.toml", "--schemes", "--double", "--devices", "emu:0-1", "--json",
                             "--set", "optimizer.name=adam", "--set", "optimizer.learning_rate=0.001").json()
        self.assertEqual((report["precision"], report["optimizer"], report["notes"]), ("double", "adam", []))
        for result in report["schemes"]:
            self.assertLess(result["largest_difference"], 1e-13, result["scheme"])
            self.assertAlmostEqual(result["tolerance"], 3 * (1e-12 + 1e-11), delta=1e-15)
        self.assertTrue(report["passed"])

    def test_batch_normalization_in_double_precision(self):
        """It magnifies rounding, but not to anything near what single precision has."""
        self.write_job()
        report = self.purine("check", "job.toml", "--schemes", "--double", "--devices", "emu:0-1", "--json").json()
        self.assertTrue(report["passed"])
        for result in report["schemes"]:
            self.assertLess(result["tolerance"], 1e-10, result["scheme"])

    def test_check_leaves_out_what_a_network_does_not_allow(self):
        self.write_job(model={"name": "network_in_network"}, data={"channels": 3, "resize": 32}, optimizer={"name": "sgd"})
        report = self.purine("check", "job.toml", "--schemes", "--steps", "1", "--devices", "emu:0-1", "--json").json()
        self.assertEqual({result["scheme"]: result["impossible"] for result in report["schemes"] if result["impossible"]},
                         {"tensor": 'parallel.scheme is "tensor", and the network has no fully connected layers to divide'})
        self.assertTrue(report["passed"])
        self.assertIn(" not with this network: ", self.purine("check", "job.toml", "--schemes", "--steps", "1", "--devices",
                                                              "emu:0-1").output)
        self.assertRegex(self.error_of("train", "job.toml", "--devices", "emu:0-1", "--set", "parallel.scheme=tensor", status=2),
                         r"^\[job\] --set parallel.scheme=tensor: parallel.scheme is \"tensor\", and the network has no fully "
                         r"connected layers to divide; hint: name others in parallel.output_layers and parallel.input_layers$")

    def test_check_says_what_it_did_to_the_job(self):
        self.write_job()
        report = self.purine("check", "job.toml", "--schemes", "--devices", "emu:0-1", "--set", "optimizer.name=adam",
                             "--json").json()
        self.assertTrue(report["passed"])
        self.assertEqual(report["optimizer"], "momentum")
        self.assertTrue(report["notes"][0].startswith("momentum stands in for adam, "))
        self.assertTrue(report["notes"][1].startswith("batch normalisation takes the statistics of all samples here"))

    def test_check_sends_gradients_as_they_are(self):
        self.write_lenet(parallel={"devices": "emu:0-1", "gradient_format": "f16"})
        report = self.purine("check", "job.toml", "--schemes", "--steps", "1", "--json").json()
        self.assertTrue(report["passed"])
        self.assertEqual(report["notes"], ["gradients are sent as they are here; f16 rounds them on their way"])

    def test_check_tries_a_job_out(self):
        self.write_lenet(parallel={"scheme": "sharded", "devices": "emu:0-1"})
        report = self.purine("check", "job.toml", "--json").json()
        self.assertEqual((report["scheme"], report["mesh"], report["steps"]), ("sharded", "data=2", 1))
        self.assertEqual((report["training_images"], report["test_images"], report["total_steps"]), (29, 21, STEPS))
        self.assertGreater(report["loss"], 0)
        self.assertEqual([place["device"] for place in report["devices"]], ["0/emu:0", "0/emu:1"])
        self.assertGreater(report["devices"][1]["peak_bytes"], 0)
        text = self.purine("check", "job.toml", "--steps", "0").output
        self.assertIn("on data parallelism with a sharded update over emu:0-1 (data=2)\n", text)
        self.assertNotIn("loss", text)
        self.assertFalse((self.folder / "runs").exists())
        self.assertEqual(self.error_of("check", "job.toml", "--schemes", "--devices", "cpu:0", status=2),
                         "[job] job.toml: schemes differ on several devices only, and the job has one; hint: name some with "
                         "--devices, as in --devices emu:0-3")

    def test_graphs_and_benchmarks_on_several_devices(self):
        self.write_lenet()
        text = self.purine("graph", "job.toml", "--devices", "emu:0-1").output
        self.assertIn("\n@1/lenet/conv1/conv2d = conv2d(", text)
        self.assertIn("all_reduce", text)
        text = self.purine("graph", "lenet", "--batch", "4", "--devices", "emu:0-1", "--scheme", "tensor").output
        self.assertIn("@1/lenet/fc1/weight", text)
        self.assertNotIn("@1", self.purine("graph", "lenet", "--devices", "emu:0").output)
        report = self.purine("bench", "lenet", "--batch", "8", "--steps", "2", "--devices", "emu:0-3", "--scheme", "hybrid",
                             "--mesh", "data=2,model=2", "--json").json()
        self.assertEqual((report["scheme"], report["mesh"]), ("hybrid", "data=2,model=2"))
        self.assertEqual(report["devices"], [f"0/emu:{i}" for i in range(4)])
        self.assertEqual(report["parameters"], 431080, "of the network, not of its replicas")
        self.assertEqual(self.error_of("bench", "lenet", "--scheme", "data", status=2),
                         '[job] --scheme data: parallel.scheme is "data", and no devices are named; hint: set '
                         "parallel.devices, give --devices, or start several processes with mpirun")


if __name__ == "__main__":
    unittest.main()
