"""The commands beside training: what they print, as text and as JSON."""
import collections
import json
import random
import subprocess
import unittest
import xml.etree.ElementTree

from command import CLASSES, COMMAND, SIDE, CommandTest, picture, png, write_folder, write_idx


class ToolsTest(CommandTest):
    def test_version_and_help(self):
        self.assertRegex(self.purine("--version").output, r"^purine \d+\.\d+\.\d+(\+[0-9a-f]{12,})?\n$")
        self.assertIn("Commands:\n  train ", self.purine("--help").output)
        for command in (["train"], ["eval"], ["predict"], ["graph"], ["devices"], ["bench"], ["check"], ["data", "check"]):
            text = self.purine(*command, "--help").output
            self.assertIn("Usage: purine " + " ".join(command), text)
            self.assertIn("Examples:\n  purine " + " ".join(command), text)

    def test_predicts_images_of_any_size_and_mode(self):
        write_idx(self.folder / "set")
        self.write_job(train={"epochs": 3})
        self.purine("train", "job.toml")
        noise = random.Random(9)
        for label, name in enumerate(CLASSES):
            rows = picture(label, noise)
            (self.folder / f"{name}.png").write_bytes(png(SIDE, SIDE, rows))
            # The same three times as large and in colours, with a border left and right.
            large = b"".join(bytes([0] * 9 * 3) + b"".join(bytes([rows[y // 3 * SIDE + x // 3]] * 3) for x in range(3 * SIDE))
                             + bytes([0] * 9 * 3) for y in range(3 * SIDE))
            (self.folder / f"large-{name}.png").write_bytes(png(3 * SIDE + 18, 3 * SIDE, large, channels=3))
        images = [f"{size}{name}.png" for size in ("", "large-") for name in CLASSES]
        answers = self.purine("predict", "--run", "runs/job", "--json", *images).json_lines()
        self.assertEqual([answer["image"] for answer in answers], images)
        for answer, name in zip(answers, 2 * CLASSES):
            self.assertEqual(answer["classes"][0]["name"], name, answer)
            self.assertEqual(answer["classes"][0]["label"], CLASSES.index(name))
            probabilities = [entry["probability"] for entry in answer["classes"]]
            self.assertEqual(len(probabilities), 4, "all classes, since there are fewer than 5")
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertAlmostEqual(sum(probabilities), 1, places=5)
        text = self.purine("predict", "--run", "runs/job", "--top", "1", images[0]).output
        self.assertRegex(text, rf"^{images[0]}\n  +\d+\.\d\d%  {CLASSES[0]}\n$")

    def test_predicts_the_five_likeliest_of_more_classes(self):
        write_idx(self.folder / "set")
        (self.folder / "set" / "classes.txt").write_text("".join(f"{name}\n" for name in [*CLASSES, *"fghi"]), encoding="utf-8")
        self.write_job(train={"epochs": 3})
        self.purine("train", "job.toml")
        (self.folder / "a.png").write_bytes(png(SIDE, SIDE, picture(1, random.Random(9))))
        predict = ["predict", "--run", "runs/job", "a.png"]
        (everything,) = self.purine(*predict, "--top", "8", "--json").json_lines()
        self.assertAlmostEqual(sum(entry["probability"] for entry in everything["classes"]), 1, places=5)
        (answer,) = self.purine(*predict, "--json").json_lines()
        self.assertEqual(answer["classes"], everything["classes"][:5])
        self.assertEqual(answer["classes"][0]["name"], CLASSES[1])
        lines = self.purine(*predict).output.splitlines()
        self.assertEqual(lines[0], "a.png")
        self.assertEqual([line.split()[1] for line in lines[1:]], [entry["name"] for entry in answer["classes"]])

    def test_a_bad_image_does_not_keep_the_others_from_being_predicted(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 1})
        self.purine("train", "job.toml")
        good = ["a.png", "new\nline.png", "c.png"]
        for name in good:
            (self.folder / name).write_bytes(png(SIDE, SIDE, bytes(SIDE * SIDE)))
        (self.folder / "no.png").write_text("no image", encoding="utf-8")
        images = ["no.png", good[0], "absent.png", *good[1:], "."]
        result = self.purine("predict", "--run", "runs/job", "--top", "1", *images, status=1)
        self.assertEqual([line for line in result.output.splitlines() if not line.startswith("  ")],
                         ["a.png", "new\\nline.png", "c.png"])
        errors = result.error.splitlines()
        self.assertEqual(len(errors), 3, errors)
        for error, image in zip(errors, ("no.png", "absent.png", ".")):
            self.assertRegex(error, rf"^\[(image|file)\] {image}: ")
        result = self.purine("predict", "--run", "runs/job", "--json", *images, status=1)
        self.assertEqual([answer["image"] for answer in result.json_lines()], good)
        self.assertEqual(result.error.splitlines(), errors)

    def test_an_answer_that_is_not_finite_is_an_error(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 2}, optimizer={"name": "sgd", "learning_rate": 1e18, "warmup_epochs": 0,
                                                      "schedule": "constant"})
        (self.folder / "a.png").write_bytes(png(SIDE, SIDE, bytes(SIDE * SIDE)))
        self.purine("train", "job.toml", "--stop-after", "1")
        self.assertEqual(self.error_of("eval", "runs/job", status=1),
                         "[evaluation] the test loss after step 1 is not finite; hint: the weights have diverged: train with a "
                         "lower optimizer.learning_rate, a longer optimizer.warmup_epochs, or gradient clipping "
                         "(optimizer.clip_norm)")
        self.assertEqual(self.error_of("predict", "--run", "runs/job", "a.png", status=1),
                         "[prediction] a.png: the network's answer is not finite; hint: the checkpoint's weights have "
                         "diverged: take an earlier one with --checkpoint")

    def test_predicts_without_the_data_set(self):
        write_folder(self.folder / "set")
        self.write_job(data={"format": "folder", "crop": "center", "crop_size": 16, "resize": 18, "channels": 3},
                       model={"name": "small_convnet"}, train={"steps": 2})
        self.purine("train", "job.toml")
        image = self.folder / "one.png"
        image.write_bytes((self.folder / "set" / "val" / CLASSES[0] / "0.png").read_bytes())
        (self.folder / "set").rename(self.folder / "gone")
        (answer,) = self.purine("predict", "--run", "runs/job", "one.png", "--json").json_lines()
        self.assertEqual({entry["name"] for entry in answer["classes"]}, set(CLASSES))

    def test_class_names_of_the_job(self):
        write_idx(self.folder / "set")
        self.write_job(data={"class_names": ["a", "b", "c", "d"]}, train={"steps": 1})
        self.purine("train", "job.toml")
        (self.folder / "one.png").write_bytes(png(SIDE, SIDE, bytes(SIDE * SIDE)))
        (answer,) = self.purine("predict", "--run", "runs/job", "one.png", "--json").json_lines()
        self.assertEqual({entry["name"] for entry in answer["classes"]}, set("abcd"))

    def test_labels_that_look_wrong_are_told(self):
        write_idx(self.folder / "set")
        (self.folder / "set" / "classes.txt").unlink()
        labels = self.folder / "set" / "train-labels-idx1-ubyte"
        labels.write_bytes(labels.read_bytes()[:-1] + bytes([77]))
        doubt = "73 of 78 classes have no image: 4 to 76"
        self.assertIn(f"  doubtful: {doubt}\n", self.purine("data", "check", "set").output)
        parts = self.purine("data", "check", "set", "--json").json()["parts"]
        self.assertEqual([part["doubts"] for part in parts], [[doubt], ["74 of 78 classes have no image: 4 to 77"]])
        self.write_job(train={"steps": 1})
        self.assertIn(f"\nare the training set's labels right? {doubt}; `purine data check set` tells more\n",
                      self.purine("train", "job.toml").output)

    def test_graph_of_a_model(self):
        text = self.purine("graph", "lenet", "--inference").output
        self.assertIn("\nlenet/conv1/conv2d = conv2d(", text)
        self.assertNotIn("gradient", text)
        self.assertIn("conv2d_weight_gradient", self.purine("graph", "lenet", "--batch", "3").output)
        self.assertTrue(self.purine("graph", "lenet", "--format", "dot").output.startswith("digraph"))
        graph = self.purine("graph", "lenet", "--format", "json", "--batch", "7").json()
        self.assertIn("lenet/conv1/weight", [entry["path"] for entry in graph["tensors"]])
        self.assertEqual(self.purine("graph", "lenet", "--json", "--batch", "7").json(), graph)

    def test_graph_of_a_job(self):
        write_idx(self.folder / "set")
        self.write_job()
        self.assertIn("training_data", self.purine("graph", "job.toml").output)
        self.purine("graph", "job.toml", "--set", "model.name=lenet", "--inference", "--output", "graph.txt")
        self.assertIn("f32[8, 1, 20, 20]", (self.folder / "graph.txt").read_text(encoding="utf-8"))

    def test_drawing_needs_graphviz(self):
        error = self.purine("graph", "lenet", "--format", "svg", status=1, env={"PATH": str(self.folder)}).error
        self.assertEqual(error, "[graph] graphviz's command `dot` cannot be run: No such file or directory; hint: install "
                                "graphviz, or take --format dot\n")
        # What stands in for graphviz proves that the graph reaches it and that its answer comes back.
        stand_in = self.folder / "dot"
        stand_in.write_text("#!/bin/sh\n[ \"$1\" = -Tsvg ] && read -r first && echo \"<svg>$first</svg>\"\n",
                            encoding="utf-8")
        stand_in.chmod(0o755)
        self.purine("graph", "lenet", "--inference", "--format", "svg", "--output", "lenet.svg",
                    env={"PATH": f"{self.folder}:/usr/bin:/bin"})
        root = xml.etree.ElementTree.parse(self.folder / "lenet.svg").getroot()
        self.assertEqual(root.tag, "svg")
        self.assertTrue(root.text.startswith("digraph"))

    def test_graphviz_draws_the_graph(self):
        for options, words in ((["--inference"], {"conv1", "relu", "pool1"}), (["--devices", "emu:0-1"], {"locations", "all_reduce"})):
            text = self.purine("graph", "lenet", "--svg", "--batch", "8", *options).output
            root = xml.etree.ElementTree.fromstring(text)
            namespace = "{http://www.w3.org/2000/svg}"
            self.assertEqual(root.tag, namespace + "svg")
            kinds = collections.Counter(group.get("class") for group in root.iter(namespace + "g"))
            self.assertGreater(kinds["node"], 10)
            self.assertGreaterEqual(kinds["edge"], kinds["node"] - 1, "all of it hangs together")
            labels = " ".join(element.text or "" for element in root.iter(namespace + "text"))
            for word in words:
                self.assertIn(word, labels)
        self.assertEqual(self.purine("graph", "lenet", "--svg", "--inference").output,
                         self.purine("graph", "lenet", "--format", "svg", "--inference").output)
        dot = self.purine("graph", "lenet", "--inference", "--format", "dot").output
        checked = subprocess.run(["dot", "-Tplain"], input=dot, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=True)
        self.assertEqual(checked.stderr, "")
        nodes = [line for line in checked.stdout.splitlines() if line.startswith("node ")]
        self.assertEqual(len(nodes), dot.count("[shape="))

    def test_googlenet_over_devices_is_no_wider_than_can_be_read(self):
        for scheme in ("hybrid", "pipeline"):
            text = self.purine("graph", "googlenet", "--svg", "--batch", 8, "--devices", "emu:0-1", "--scheme", scheme).output
            root = xml.etree.ElementTree.fromstring(text)
            self.assertLess(float(root.get("width").removesuffix("pt")), 3000, scheme)
            labels = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
            self.assertLessEqual({"locations", "0/emu:0", "0/emu:1"}, labels)

    def test_devices(self):
        report = self.purine("devices", "--json").json()
        (device,) = report["devices"]
        self.assertEqual(device["device"], "0/cpu:0")
        self.assertGreaterEqual(device["cores"], 1)
        self.assertGreater(device["available_bytes"], 0)
        text = self.purine("devices").output
        self.assertTrue(text.startswith("0/cpu:0  "))
        # What else --devices takes is told too, and is taken.
        self.assertEqual(report["on_request"], [{"device": "0/emu:N", "kind": "emu"}])
        self.assertIn("\n0/emu:N  emulated devices, made when asked for: --devices emu:0\n", text)
        bench = self.purine("bench", "lenet", "--batch", "1", "--steps", "1", "--devices", "0/emu:1", "--json").json()
        self.assertEqual(bench["devices"], ["0/emu:1"])

    def test_bench_is_one_json_line(self):
        result = self.purine("bench", "lenet", "--batch", "4", "--steps", "3", "--workers", "2", "--trace", "trace.json", "--json")
        self.assertEqual(result.output.count("\n"), 1)
        report = result.json()
        self.assertEqual((report["model"], report["batch"], report["steps"]), ("lenet", 4, 3))
        self.assertEqual((report["image"], report["classes"], report["parameters"]), ([1, 28, 28], 10, 431080))
        self.assertEqual((report["devices"], report["workers"], report["inference"]), (["0/cpu:0"], 2, False))
        self.assertGreaterEqual(report["images_per_s_best"], report["images_per_s_median"])
        self.assertGreater(report["images_per_s_median"], 0)
        self.assertGreater(report["peak_bytes"], 3 * 4 * 431080, "weights, gradients and velocities")
        self.assertGreater(report["ready_s"], 0)
        scheduling = report["scheduling"]
        self.assertGreater(scheduling["data_parallel_predicted_step_seconds"], 0)
        self.assertEqual(scheduling["candidates"][0]["parts"], 1)
        self.assertIn(scheduling["parts"], [candidate["parts"] for candidate in scheduling["candidates"]])
        self.assertGreater(min(candidate["predicted_step_seconds"] for candidate in scheduling["candidates"]), 0)
        events = json.loads((self.folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual({event["args"]["iteration"] for event in events if event["ph"] == "X"}, {2, 3, 4})
        text = self.purine("bench", "lenet", "--batch", "2", "--steps", "1", "--inference", "--image", "1,32,32").output
        self.assertRegex(text, r"\n[\d.]+ images/s median, [\d.]+ best, over 1 step\n$")

    def test_bench_keeps_to_a_memory_limit(self):
        bench = ("bench", "small_convnet", "--batch", "128", "--steps", "1", "--warm-up", "0", "--workers", "2")
        before = self.purine(*bench, "--json").json()
        self.assertEqual(before["run_again"], 0)
        limit = 0.8 * before["peak_bytes"]
        after = self.purine(*bench, "--memory-limit", str(limit / 1e6), "--json").json()
        self.assertLessEqual(after["peak_bytes"], limit)
        self.assertGreater(after["run_again"], 0)
        self.assertRegex(self.purine(*bench, "--memory-limit", str(limit / 1e6)).output,
                         r"\nto fit into the memory limit, \d+ operators? runs? again for the backward pass.*: "
                         r"a step needs [\d.]+ MB instead of [\d.]+ MB\n")
        sooner = str(0.97 * before["peak_bytes"] / 1e6)
        self.assertRegex(self.purine(*bench, "--memory-limit", sooner).output,
                         r"\nto fit into the memory limit, storage is reused sooner: a step needs [\d.]+ MB instead of [\d.]+ MB\n")
        self.assertRegex(self.purine(*bench, "--memory-limit", "1", status=1).error,
                         r"^\[memory\] a step needs [\d.]+ MB, or [\d.]+ MB where (activations are computed again "
                         r"instead of being kept|storage is reused sooner).*; the limit is 1.0 MB; hint: raise the limit, or "
                         r"take a smaller batch\n$")

    def test_bench_tells_of_operators(self):
        bench = ("bench", "lenet", "--batch", "4", "--steps", "3", "--workers", "2")
        report = self.purine(*bench, "--ops", "--save", "costs.json", "--json").json()
        machine = report["machine"]
        self.assertEqual(machine["workers"], 2)
        self.assertGreater(report["dispatcher"], 0)
        paths = [line["path"] for line in report["operators"]]
        self.assertIn("lenet/conv1/conv2d", paths)
        seconds = [line["seconds"] for line in report["operators"]]
        self.assertEqual(seconds, sorted(seconds, reverse=True))
        convolution = report["operators"][paths.index("lenet/conv1/conv2d")]
        operations = 2 * 4 * 20 * 24 * 24 * 25
        self.assertAlmostEqual(convolution["operations_per_second"] * convolution["seconds"] / operations, 1, delta=0.1)
        self.assertEqual(convolution["algorithm"], "direct")
        self.assertGreaterEqual(convolution["roofline"],
                                0.99 * convolution["operations_per_second"] / machine["operations_per_second"])
        table = json.loads((self.folder / "costs.json").read_text(encoding="utf-8"))
        self.assertEqual(table["machine"], machine)
        by_path = {entry["path"]: entry for entry in table["operators"]}
        self.assertEqual(by_path["lenet/conv1/conv2d"]["seconds"], convolution["seconds"])
        self.assertAlmostEqual(report["busy"] * 2 * report["batch"] / report["images_per_s_median"], sum(seconds), delta=1e-6)

    def test_bench_groups_operators(self):
        bench = ("bench", "lenet", "--batch", "4", "--steps", "2", "--ops")
        text = self.purine(*bench, "--by", "type").output
        self.assertRegex(text, r"\n +[\d.]+ +[\d.]+% +[\d.]+ +[\d.]+ +[\d.]+%  direct +2 x conv2d\n")
        self.assertRegex(text, r"\n +[\d.]+ all \d+ operators; \d+ workers? busy [\d.]+% of [\d.]+ ms a step\n")
        self.assertRegex(text, r"\nthe dispatcher alone, with operators that do nothing: [\d.]+ ms, [\d.]+% of a step\n$")
        shapes = self.purine(*bench, "--by", "shape", "--json").json()["operators"]
        self.assertIn("max_pool2d", " ".join(line["shape"] for line in shapes))
        self.assertEqual(self.error_of("bench", "lenet", "--by", "type", status=2),
                         "[command] purine bench: --by requires --ops; hint: see purine bench --help")

    def test_data_check(self):
        write_idx(self.folder / "set")
        write_folder(self.folder / "photographs")
        report = self.purine("data", "check", "set", "--json").json()
        self.assertEqual((report["format"], report["ok"]), ("idx", True))
        self.assertEqual([part["images"] for part in report["parts"]], [60, 20])
        broken = self.folder / "photographs" / "val" / CLASSES[2] / "1.png"
        broken.write_bytes(broken.read_bytes()[:50])
        report = self.purine("data", "check", "photographs", "--json", status=1).json()
        self.assertEqual((report["format"], report["ok"]), ("folder", False))
        (finding,) = [finding for part in report["parts"] for finding in part["broken"]]
        self.assertTrue(finding["path"].endswith(f"{CLASSES[2]}/1.png"), finding)
        self.assertIn(f"{CLASSES[2]}/1.png", self.purine("data", "check", "photographs", status=1).output)

    def test_output_that_cannot_be_written(self):
        for arguments in (["devices"], ["graph", "googlenet"]):  # a line, and more than is written at once
            with open("/dev/full", "w", encoding="utf-8") as full:
                process = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((process.returncode, process.stderr), (1, "[output] standard output cannot be written\n"))


if __name__ == "__main__":
    unittest.main()
