"""Command lines and job files that are wrong: one line on standard error, status 2, and nothing has run."""
import unittest

from command import CommandTest, write_folder, write_idx


class UsageTest(CommandTest):
    def test_a_command_that_does_not_exist(self):
        self.assertEqual(self.error_of("trian", status=2),
                         "[command] purine: unknown command 'trian'; hint: did you mean 'train'?")
        self.assertEqual(self.error_of("data", "chek", status=2),
                         "[command] purine data: unknown command 'chek'; hint: did you mean 'check'?")
        self.assertEqual(self.error_of(status=2), "[command] purine: a command is missing; hint: see purine --help")

    def test_options_that_do_not_exist(self):
        self.assertEqual(self.error_of("train", "job.toml", "--sett", "a=b", status=2),
                         "[command] purine train: unknown option '--sett'; hint: did you mean '--set'?")
        self.assertEqual(self.error_of("devices", "here", status=2),
                         "[command] purine devices: too many arguments, from 'here'; hint: see purine devices --help")

    def test_values_of_options(self):
        self.assertEqual(self.error_of("train", "job.toml", "--workers", "0", status=2),
                         "[command] purine train: --workers: must be a whole number from 1 to 1024, got 0; hint: see purine train "
                         "--help")
        self.assertIn("--batch: must be a whole number from 1 to 1048576, got many",
                      self.error_of("bench", "lenet", "--batch", "many", status=2))
        self.assertEqual(self.error_of("bench", "lenet", "--scheduling", "devided", status=2),
                         "[command] purine bench: --scheduling: must be one of auto, side_by_side, divided, got devided (did you mean "
                         "divided?); hint: see purine bench --help")
        self.assertIn("--format: must be one of text, dot, json, svg, got pdf; hint: ",
                      self.error_of("graph", "lenet", "--format", "pdf", status=2))
        for text in ("3,x,4", "3,224", "3,0,4", "3,99999999999,9", "3,224,99999999999999999999"):
            self.assertIn(f"--image: must be like 3,224,224, each from 1 to 16384, got {text}",
                          self.error_of("bench", "lenet", "--image", text, status=2))
        huge = "99999999999999999999"
        for option in ("--seed", "--batch", "--steps", "--warm-up", "--classes", "--workers"):
            self.assertRegex(self.error_of("bench", "lenet", option, huge, status=2),
                             rf"{option}: must be a whole number from \d to \d+, got {huge}")
        self.write_job()
        self.assertEqual(self.error_of("train", "job.toml", "--seed", huge, status=2),
                         f"[job] --seed {huge}: train.seed must be an integer, got {huge}; hint: integers have 64 bits")
        for limit in ("0", "-1", "nan", "inf", "1e300", "much"):
            self.assertEqual(self.error_of("bench", "lenet", "--memory-limit", limit, status=2),
                             "[command] purine bench: --memory-limit: must be a number above 0 and at most 1000000000, got "
                             f"{limit}; hint: see purine bench --help")
        self.assertEqual(self.error_of("train", "job.toml", "--set", "train.memory_limit=1e300", status=2),
                         "[job] --set train.memory_limit=1e300: train.memory_limit must be 0 to 1000000000, got 1e+300")
        self.assertIn("--format", self.error_of("graph", "lenet", "--format", "pdf", status=2))
        self.assertEqual(self.error_of("graph", "lenet", "--vertices", 9, status=2),
                         "[command] purine graph: --vertices is of drawings; hint: take --svg or --format dot with it")
        self.assertEqual(self.error_of("graph", "lenet", "--json", "--format", "dot", status=2),
                         "[command] purine graph: names its format twice; hint: give one of --format, --svg and --json")
        self.assertIn("--new-run", self.error_of("train", "job.toml", "--resume", "--new-run", status=2))

    def test_files_that_cannot_be_written_are_told_before_anything_runs(self):
        (self.folder / "cluster.toml").write_text(
            "[cpu.c]\ncores = 1\nf32_gflops = 9\nmemory_gb_per_s = 9\nmemory_gib = 9\n[card.e]\ngbit_per_s = 1\n[[host]]\n"
            'cpu = "c"\ncard = "e"\n', encoding="utf-8")
        (self.folder / "trace.json").write_text("no trace", encoding="utf-8")
        (self.folder / "b.json").mkdir()
        # A million steps would take longer than the test has: the first is never run.
        bench = ["bench", "vgg16", "--steps", "1000000"]
        simulate = ["simulate", "lenet", "--cluster", "cluster.toml"]
        for arguments, option in ((bench, "--report"), (bench, "--trace"), (bench, "--save"), (simulate, "--trace"),
                                  (["plan", *simulate[1:]], "--output"), (["graph", "lenet"], "--output"),
                                  (["report", "trace.json"], "--output")):
            self.assertEqual(self.error_of(*arguments, option, "none/a.html", status=2),
                             f"[command] purine {arguments[0]}: {option} none/a.html: cannot create: No such file or directory; "
                             "hint: there is no folder none")
        self.assertEqual(self.error_of(*bench, "--report", "b.html", status=2),
                         "[command] purine bench: --report, whose trace is b.json: is not a regular file, so it cannot be replaced; hint: "
                         "write to a path that is free or that names an ordinary file")
        write_idx(self.folder / "set")
        self.write_job()
        self.assertEqual(self.error_of("train", "job.toml", "--report", "--run-folder", "trace.json/run", status=1),
                         "[file] trace.json: cannot make the folder: Not a directory")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["b.json", "cluster.toml", "job.toml", "set", "trace.json"])

    def test_values_that_are_empty(self):
        """As those of a script's variables that are not set."""
        for arguments, name in ((("train", ""), "JOB"), (("train", "job.toml", "--run-folder", ""), "--run-folder"),
                                (("train", "job.toml", "--devices", ""), "--devices"), (("eval", "a", "--checkpoint", ""), "--checkpoint"),
                                (("predict", "--run", "", "a.png"), "--run"), (("predict", "--run", "a", "a.png", ""), "IMAGE"),
                                (("graph", ""), "TARGET"), (("graph", "lenet", "--output", ""), "--output"),
                                (("bench", "lenet", "--trace", ""), "--trace"), (("data", "check", ""), "FOLDER"),
                                (("simulate", "lenet", "--cluster", ""), "--cluster"), (("why", ""), "TRACE")):
            command = "data check" if arguments[0] == "data" else arguments[0]
            hint = "give a value, or leave it out" if name.startswith("--") else "name one"
            self.assertEqual(self.error_of(*arguments, status=2), f"[command] purine {command}: {name} is empty; hint: {hint}")

    def test_outputs_that_are_something_else_are_refused(self):
        """What a command reads, or another of its outputs."""
        write_idx(self.folder / "set")
        self.write_job(trace={"steps": 3, "first_step": 2})
        self.purine("train", "job.toml")
        (self.folder / "link.toml").symlink_to("job.toml")
        (self.folder / "cluster.toml").touch()
        files = {path: path.read_bytes() for path in (self.folder / "job.toml", self.folder / "runs/job/trace.json")}
        read = "is what the command reads; hint: write to another file"
        self.assertEqual(self.error_of("graph", "job.toml", "--output", "./link.toml", status=2),
                         f"[command] purine graph: --output ./link.toml: {read}")
        self.assertEqual(self.error_of("report", "runs/job/trace.json", "--output", "runs/job/trace.json", status=2),
                         f"[command] purine report: --output runs/job/trace.json: {read}")
        for command, option in (("simulate", "--trace"), ("plan", "--output")):
            self.assertEqual(self.error_of(command, "job.toml", "--cluster", "cluster.toml", option, "cluster.toml", status=2),
                             f"[command] purine {command}: {option} cluster.toml: {read}")
        for arguments, text in ((("--save", "a", "--trace", "./a"), "--trace ./a: is what --save writes"),
                                (("--report", "b.json"), "--report, whose trace is b.json: is what --report writes")):
            self.assertEqual(self.error_of("bench", "lenet", *arguments, status=2),
                             f"[command] purine bench: {text}; hint: write to another file")
        self.assertEqual({path: path.read_bytes() for path in files}, files)
        self.assertEqual(self.error_of("report", "runs/job/trace.json", "--metrics", "job.toml", status=1),
                         "[metrics] job.toml: line 1 is not a record of metrics: it is not JSON; hint: repair the file or move it "
                         "away")

    def test_a_job_is_needed(self):
        self.assertEqual(self.error_of("train", status=2),
                         "[command] purine train: there is no job file; hint: name one; only --resume with --run-folder "
                         "goes without")
        self.assertEqual(self.error_of("train", "none.toml", status=2),
                         "[job] none.toml: cannot open: No such file or directory")

    def test_a_key_that_does_not_exist_is_told_before_anything_runs(self):
        self.write_job(optimizer={"learning_rat": 0.1})
        line = 1 + (self.folder / "job.toml").read_text(encoding="utf-8").split("\n").index("learning_rat = 0.1")
        self.assertEqual(self.error_of("train", "job.toml", status=2),
                         f"[job] job.toml:{line}: unknown key 'learning_rat' in [optimizer]; hint: did you mean "
                         "'learning_rate'?")
        self.assertFalse((self.folder / "runs").exists())

    def test_settings_are_checked_alike(self):
        self.write_job()
        self.assertEqual(self.error_of("train", "job.toml", "--set", "data.batch=none", status=2),
                         "[job] --set data.batch=none: data.batch must be an integer, got none")
        self.assertEqual(self.error_of("train", "job.toml", "--seed", "-1", status=2),
                         "[job] --seed -1: train.seed must be at least 0, got -1")

    def line_of(self, start):
        lines = (self.folder / "job.toml").read_text(encoding="utf-8").split("\n")
        (line,) = [number for number, line in enumerate(lines, 1) if line.startswith(start)]
        return f"[job] job.toml:{line}: "

    def test_what_only_the_data_can_tell_is_told_with_its_line(self):
        """Training, evaluation and the graph find the same mistakes, and leave no run folder."""
        write_idx(self.folder / "set", training=20)
        write_folder(self.folder / "photographs")
        (self.folder / "file").write_text("no folder", encoding="utf-8")
        for section, key, value, message in (
                ("data", "folder", "nowhere", 'data.folder is "nowhere", which does not exist'),
                ("data", "folder", "file", 'data.folder is "file", which is not a folder'),
                ("data", "folder", "photographs", 'data.folder is "photographs", which cannot be used with format = "idx": has no '
                 "file train-images-idx3-ubyte (or .gz); hint: `purine data check photographs` tells what is there"),
                ("data", "batch", 21, "data.batch is 21, and the training set has only 20 images"),
                ("data", "mean", [0.1, 0.2, 0.3], "data.mean has 3 values, and the images have 1 channel; hint: give one value, or "
                 "set channels = 3"),
                ("data", "deviation", [0.1, 0.2, 0.3], "data.deviation has 3 values, and the images have 1 channel; hint: give one "
                 "value, or set channels = 3"),
                ("data", "class_names", ["a"], "data.class_names has 1 name, and the data set 4 classes"),
                ("model", "classes", 3, "model.classes is 3, and the data set has 4 classes; hint: leave it out, or name at least "
                 "as many")):
            self.write_job(**{section: {key: value}})
            for command in ("train", "graph"):
                self.assertEqual(self.error_of(command, "job.toml", status=2), self.line_of(f"{key} = ") + message)
        self.write_job(data={"format": "cifar10"})
        self.assertEqual(self.error_of("train", "job.toml", status=2), self.line_of("folder = ") +
                         'data.folder is "set", which cannot be used with format = "cifar10": set/data_batch_1.bin: can\'t be read: '
                         "No such file or directory; hint: `purine data check set` tells what is there")
        self.write_job(data={"evaluation_resize": 30})
        self.assertEqual(self.error_of("train", "job.toml", status=2), self.line_of("evaluation_resize = ") +
                         "data.evaluation_resize is 30, which makes test images of 1 x 30 x 30, and the network is for 1 x 20 x 20; "
                         "hint: set a crop, whose size both have then")
        self.assertFalse((self.folder / "runs").exists())

    def test_what_only_the_graph_can_tell_is_told_with_its_line(self):
        write_idx(self.folder / "set")
        self.write_job(model={"name": "alexnet"})
        for command in ("train", "graph"):
            self.assertRegex(self.error_of(command, "job.toml", status=2),
                             r'^\[job\] job\.toml:2: model\.name is "alexnet", which cannot take images of 1 x 20 x 20: alexnet/\S+: '
                             r".*; hint: take another network, or images of another size \(resize, crop and crop_size in \[data\]\)$")
        # A setting is named as it was given.
        self.assertRegex(self.error_of("train", "job.toml", "--set", "model.name=vgg16", status=2),
                         r'^\[job\] --set model\.name=vgg16: model\.name is "vgg16", which cannot take images of 1 x 20 x 20: ')
        self.write_job()
        self.assertEqual(self.error_of("graph", "job.toml", "--batch", "61", status=2),
                         "[job] --batch 61: data.batch is 61, and the training set has only 60 images")

    def test_other_commands_tell_it_too(self):
        write_idx(self.folder / "set")
        self.write_job(data={"batch": 61})
        for arguments in ([], ["--schemes"]):
            self.assertEqual(self.error_of("check", "job.toml", *arguments, status=2),
                             self.line_of("batch = ") + "data.batch is 61, and the training set has only 60 images")
        self.assertRegex(self.error_of("bench", "lenet", "--image", "1,4,4", status=2),
                         r'^\[command\] purine bench: the model is "lenet", which cannot take images of 1 x 4 x 4: lenet/conv1/conv2d: '
                         r".*; hint: --image sets their size$")
        self.write_job(optimizer={"name": "sgd", "learning_rate": 1e30, "schedule": "constant", "warmup_epochs": 0})
        for arguments in ([], ["--schemes"]):
            self.assertRegex(self.error_of("check", "job.toml", "--steps", "3", *arguments, "--json", status=1),
                             r"^\[training\] step \d: .*; hint: training has diverged: ")

    def test_an_evaluation_names_the_mistake_too(self):
        write_idx(self.folder / "set")
        self.write_job(train={"steps": 1})
        self.purine("train", "job.toml")
        self.assertEqual(self.error_of("eval", "runs/job", "--set", "data.folder=nowhere", status=2),
                         '[job] --set data.folder=nowhere: data.folder is "nowhere", which does not exist')
        checkpoint = "runs/job/checkpoints/step-00000001.safetensors"
        other_network = (f"[checkpoint] {checkpoint}: is of the network small_convnet, and the job's is lenet; hint: name a "
                         "checkpoint of the job's network, or a job with the checkpoint's")
        self.assertEqual(self.error_of("eval", "runs/job", "--set", "model.name=lenet", status=1), other_network)
        lenet = self.write_job("lenet.toml", model={"name": "lenet"}, data={"resize": 24}, train={"steps": 1})
        self.assertEqual(self.error_of("eval", lenet, "--checkpoint", checkpoint, status=1), other_network)
        self.purine("train", lenet)
        self.assertEqual(self.error_of("predict", "--run", "runs/lenet", "--checkpoint", checkpoint, "a.png", status=1),
                         other_network)
        self.assertEqual(self.error_of("eval", "job.toml", "--set", "data.resize=24", "--checkpoint", checkpoint, status=1),
                         f"[checkpoint] {checkpoint}: is of a network for images of 1 x 20 x 20, and the job makes test images "
                         "of 1 x 24 x 24; hint: name a checkpoint of this job, or set crop and crop_size in [data]")
        self.assertEqual(self.error_of("eval", "runs/job", "--set", "data.mean=0.1,0.2,0.3", status=2),
                         "[job] --set data.mean=0.1,0.2,0.3: data.mean has 3 values, and the images have 1 channel; hint: give one "
                         "value, or set channels = 3")

    def test_a_file_of_the_data_set_that_is_damaged_is_no_mistake_of_the_job(self):
        write_idx(self.folder / "set")
        path = self.folder / "set" / "t10k-labels-idx1-ubyte"
        path.write_bytes(path.read_bytes()[:-1])
        self.write_job()
        self.assertRegex(self.error_of("train", "job.toml", status=1), r"^\[idx\] set/t10k-labels-idx1-ubyte: is cut short")

    def test_devices_that_are_not_there(self):
        self.write_job()
        write_idx(self.folder / "set")
        self.assertEqual(self.error_of("train", "job.toml", "--devices", "cuda:0", status=2),
                         "[job] --devices cuda:0: there is no device 0/cuda:0; hint: this build has cpu and emu devices")
        self.assertIn("[job] --devices gpu: parallel.devices 'gpu' is no list of devices; hint: ",
                      self.error_of("bench", "lenet", "--devices", "gpu", status=2))
        self.purine("train", "job.toml", "--set", "train.steps=1")
        self.assertEqual(self.error_of("predict", "--run", "runs/job", "a.png", "--devices", "cpu:0,cpu:1", status=2),
                         "[command] --devices cpu:0,cpu:1: prediction runs on one device, got 2; hint: name one")

    def test_a_model_that_does_not_exist(self):
        self.assertEqual(self.error_of("graph", "lenett", status=2),
                         "[command] lenett: is neither a job file nor a model; hint: did you mean 'lenet'?")
        self.assertEqual(self.error_of("bench", "lenett", status=2),
                         "[command] purine bench: there is no model 'lenett'; hint: did you mean 'lenet'?")

    def test_a_run_that_is_not_there(self):
        (self.folder / "file").touch()
        self.assertEqual(self.error_of("predict", "--run", "file", "a.png", status=2),
                         "[run folder] file: is not a folder; hint: name the run's folder")
        self.assertEqual(self.error_of("predict", "--run", "runs/none", "a.png", status=2),
                         "[run folder] runs/none: does not exist; hint: train a network first")
        self.write_job()
        write_idx(self.folder / "set")
        self.assertEqual(self.error_of("train", "job.toml", "--resume", status=2),
                         "[run folder] runs/job: does not exist, so there is no run to go on with; hint: start one "
                         "without --resume")
        self.assertEqual(self.error_of("eval", "job.toml", status=2),
                         "[run folder] runs/job: does not exist; hint: name a run's folder, or a checkpoint with "
                         "--checkpoint")


if __name__ == "__main__":
    unittest.main()
