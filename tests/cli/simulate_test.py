"""`purine simulate`: how fast a job would train on a cluster that isn't there."""
import json
import pathlib
import unittest
import unittest.mock

from command import CommandTest, write_idx

CLUSTERS = pathlib.Path(__file__).resolve().parents[2] / "clusters"

SMALL = """
name = "small"
[cpu.core]
cores = 1
f32_gflops = 50
memory_gb_per_s = 10
memory_gib = {memory}
[card.eth]
gbit_per_s = {rate}
latency_us = 30
[[host]]
count = {hosts}
cpu = "core"
card = "eth"
"""


class SimulateTest(CommandTest):
    def cluster(self, rate=1, hosts=2, memory=8):
        (self.folder / "cluster.toml").write_text(SMALL.format(rate=rate, hosts=hosts, memory=memory), encoding="utf-8")
        return "cluster.toml"

    def simulate(self, *arguments):
        return self.purine("simulate", *arguments, "--json").json()

    def test_a_model_on_one_device_and_on_more(self):
        one = self.simulate("lenet", "--batch", 64, "--cluster", self.cluster(hosts=1))
        self.assertEqual(one["device_count"], 1)
        self.assertEqual(one["bytes_sent"], 0)
        self.assertAlmostEqual(one["images_per_s"], 64 / one["step_seconds"], delta=1e-6 * one["images_per_s"])
        self.assertAlmostEqual(one["speed_up"], 1)
        (device,) = one["devices"]
        self.assertAlmostEqual(device["computing_seconds"], one["step_seconds"], delta=1e-6)
        two = self.simulate("lenet", "--batch", 128, "--cluster", self.cluster(rate=10))
        self.assertEqual(two["setup"], "data parallelism over cpu:0 at each of 2 ranks (data=2)")
        self.assertAlmostEqual(two["one_device_images_per_s"], one["images_per_s"], delta=1e-6 * one["images_per_s"])
        self.assertGreater(two["speed_up"], 1.5)
        self.assertLess(two["speed_up"], 2)
        self.assertAlmostEqual(two["efficiency"], two["speed_up"] / 2)
        # Each host sends half of the gradients, and half of their sums or of the new variables.
        self.assertAlmostEqual(two["bytes_sent"], 2 * 4 * two["parameters"], delta=0.1 * two["bytes_sent"])

    def test_slow_links_hold_it_up(self):
        rates = [0.1, 1, 10]
        speeds = [self.simulate("lenet", "--batch", 32, "--cluster", self.cluster(rate=rate))["images_per_s"] for rate in rates]
        self.assertEqual(speeds, sorted(speeds))
        self.assertLess(speeds[0], 0.2 * speeds[-1])
        slow = self.simulate("lenet", "--batch", 32, "--cluster", self.cluster(rate=0.1))
        out = next(link for link in slow["links"] if link["link"] == "0 network out")
        # Its bytes alone take nearly all of a step.
        self.assertGreater(out["transfer_seconds"], 0.8 * slow["step_seconds"])
        self.assertAlmostEqual(out["transfer_seconds"], out["bytes"] * 8 / 0.1e9, delta=0.02 * out["transfer_seconds"])

    def test_it_tells_what_takes_the_most(self):
        arguments = ["lenet", "--batch", 32, "--cluster", self.cluster(rate=0.1)]
        answer = self.simulate(*arguments)
        cause = answer["causes"][0]
        self.assertEqual(cause["what"], "transfer")
        self.assertRegex(cause["text"], r"^\d+\.\d% of a step, [\d.]+ ms: moving data between ranks, \d+% of it at the rate of the links, 0\.1 Gbit/s; ")
        text = self.purine("simulate", *arguments).output
        self.assertIn(f"\nWhat takes the most:\n1. {cause['text']}.\n   Hint: {cause['hint']}.\n", text)
        self.simulate(*arguments, "--trace", "trace.json")
        self.assertEqual(self.purine("why", "trace.json", "--json").json()["causes"][0], {**cause, "seconds": unittest.mock.ANY})

    def test_the_same_answer_each_time(self):
        arguments = ["lenet", "--batch", 32, "--cluster", self.cluster(hosts=3, rate=0.5)]
        first, second = self.simulate(*arguments), self.simulate(*arguments)
        for answer in (first, second):
            for key in ("divide_seconds", "freeze_seconds", "simulate_seconds"):
                del answer[key]
        self.assertEqual(first, second)

    def test_a_job_with_its_data_set_and_without(self):
        write_idx(self.folder / "set")
        self.write_job(parallel={"scheme": "sharded"})
        answer = self.simulate("job.toml", "--cluster", self.cluster())
        self.assertEqual((answer["image"], answer["classes"]), ([1, 20, 20], 4))
        self.assertIn("sharded", answer["setup"])
        (self.folder / "set").rename(self.folder / "gone")
        text = self.purine("simulate", "job.toml", "--cluster", "cluster.toml").output
        self.assertIn("(the data set isn't here: what the model is made for)", text)
        self.assertRegex(text, r"\nstep \d+\.\d+ ms, \d+\.\d+ images/s: \d+\.\d+ times one device with its share of the batch "
                               r"\(\d+\.\d+\), efficiency \d+\.\d%\n\d+ messages with \S+ \w+ between hosts in a step\n")
        self.assertRegex(text, r"\ndevice +computing +transfers ms +overlapped +exposed +memory\n"
                               r"(\d/cpu:0 +\d+\.\d% +(\d+\.\d{3} +){3}\S+ \w+ of 8.59 GB\n){2}")
        self.assertRegex(text, r"\nlink +busy +busy ms +overlapped +exposed +moved in a step\n"
                               r"(\d network (in|out) +\d+\.\d% +(\d+\.\d{3} +){3}\S+ \w+\n){4}")
        self.assertRegex(text, r"\nsimulated [\d,]+ executions of [\d,]+ operators in [\d.]+ s, [\d.]+ us each in the first half of the steps, "
                               r"[\d.]+ us in the second; divided in [\d.]+ s, frozen in [\d.]+ s\n$")

    def test_schemes_devices_and_barriers(self):
        cluster = CLUSTERS / "gpus-8.toml"
        data = self.simulate("alexnet", "--batch", 256, "--cluster", cluster)
        self.assertEqual(data["device_count"], 8)
        hybrid = self.simulate("alexnet", "--batch", 256, "--cluster", cluster, "--scheme", "hybrid")
        moved = {name: sum(link["bytes"] for link in answer["links"] if "peer in" in link["link"])
                 for name, answer in (("data", data), ("hybrid", hybrid))}
        self.assertLess(moved["hybrid"], moved["data"])
        four = self.simulate("alexnet", "--batch", 128, "--cluster", cluster, "--devices", "sim:0-3")
        self.assertEqual(four["device_count"], 4)
        barrier = self.simulate("alexnet", "--batch", 256, "--cluster", cluster, "--barrier")
        self.assertGreaterEqual(barrier["step_seconds"], data["step_seconds"])

    def test_priorities_have_first_what_is_needed_first(self):
        arguments = ["alexnet", "--batch", 64, "--cluster", CLUSTERS / "two-hosts-1gbit.toml"]
        urgent_first = self.simulate(*arguments)
        in_turn = self.simulate(*arguments, "--no-priorities")
        self.assertEqual(in_turn["bytes_sent"], urgent_first["bytes_sent"])
        self.assertGreater(in_turn["step_seconds"], 1.05 * urgent_first["step_seconds"])

    def test_costs_from_a_trace(self):
        self.purine("bench", "lenet", "--batch", "16", "--steps", "4", "--workers", "1", "--trace", "lenet.json")
        answer = self.simulate("lenet", "--batch", 16, "--cluster", self.cluster(hosts=1), "--costs", "lenet.json", "--steps", 4)
        self.assertEqual(answer["measured_operators"], answer["computing_operators"])
        events = json.loads((self.folder / "lenet.json").read_text(encoding="utf-8"))["traceEvents"]
        # One core runs one operator after another, and the four steps are those that were measured.
        expected = sum(event["dur"] for event in events if event["ph"] == "X") / 1e6 / 4
        self.assertAlmostEqual(answer["step_seconds"], expected, delta=0.1 * expected)
        two = self.simulate("lenet", "--batch", 32, "--cluster", self.cluster(rate=100), "--costs", "lenet.json")
        self.assertGreater(two["measured_operators"], 0.5 * two["computing_operators"])

    def test_costs_from_a_table(self):
        bench = self.purine("bench", "lenet", "--batch", 16, "--steps", 4, "--workers", 1, "--ops", "--save", "costs.json", "--json").json()
        answer = self.simulate("lenet", "--batch", 16, "--cluster", self.cluster(hosts=1), "--costs", "costs.json")
        self.assertEqual(answer["measured_operators"], answer["computing_operators"])
        # One core runs one operator after another, each of them as long as the table says.
        self.assertAlmostEqual(answer["step_seconds"], sum(line["seconds"] for line in bench["operators"]), delta=0.01 * answer["step_seconds"])

    def test_a_trace_in_virtual_time(self):
        answer = self.simulate("lenet", "--batch", 16, "--cluster", self.cluster(), "--steps", 3, "--trace", "trace.json")
        for name, rank in (("trace.json", 0), ("trace.rank1.json", 1)):
            events = json.loads((self.folder / name).read_text(encoding="utf-8"))["traceEvents"]
            operators = [event for event in events if event["ph"] == "X"]
            self.assertEqual({event["args"]["location"] for event in operators}, {f"{rank}/cpu:0"})
            self.assertEqual({event["args"]["iteration"] for event in operators}, {2, 3, 4})
            names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
            self.assertEqual(names, {"worker 0", "receives", *(name for name in names if name.startswith("sends "))})
            self.assertIn("sends 0", names)
            length = max(event["ts"] + event["dur"] for event in operators) - min(event["ts"] for event in operators)
            self.assertGreater(length, 2.5e6 * answer["step_seconds"])

    def test_a_simulated_trace_is_explained_as_one_of_a_run(self):
        arguments = ["lenet", "--cluster", self.cluster(rate=0.5)]
        simulated = self.simulate(*arguments, "--batch", 16, "--trace", "trace.json")
        why = self.purine("why", "trace.json", "--json").json()
        self.assertTrue(why["has_dependencies"])
        self.assertAlmostEqual(why["step_seconds"], simulated["step_seconds"], delta=0.05 * simulated["step_seconds"])
        self.assertEqual([rank["host"] for rank in why["ranks"]], ["core", "core"])
        self.assertEqual(why["causes"][0]["what"], "transfer")
        page = self.purine("report", "trace.json").output.strip()
        self.assertIn('["time","simulated"]', (self.folder / page).read_text(encoding="utf-8"))

    def test_a_trace_tells_what_another_batch_and_other_schemes_would_take(self):
        arguments = ["lenet", "--cluster", self.cluster(rate=0.5)]
        self.simulate(*arguments, "--batch", 16, "--trace", "trace.json")
        simulated = self.purine("why", "trace.json", "--json").json()["simulated"]
        expected = {"nothing changed": ["--batch", 16], "a batch of 32, twice as large": ["--batch", 32]}
        for scheme in ("sharded", "tensor", "hybrid", "pipeline"):
            expected[f"the scheme {scheme}"] = ["--batch", 16, "--scheme", scheme]
        changes = {change["what"]: change for change in [simulated["as_it_was"], *simulated["changes"]]}
        self.assertEqual(set(changes), set(expected))
        for what, options in expected.items():
            answer = self.simulate(*arguments, *options)
            for key in ("step_seconds", "images_per_s"):
                self.assertAlmostEqual(changes[what][key], answer[key], delta=0.01 * answer[key], msg=what)
        text = self.purine("why", "trace.json").output
        self.assertRegex(text, r"\na batch of 32, twice as large +[\d.]+ +[\d.]+ +\+[\d.]+%\n")
        self.assertRegex(text, r"\nthe simulation's own error +[+-]\d+\.\d%\n")

    def test_a_terminal_shows_what_it_is_at(self):
        arguments = ["simulate", "lenet", "--cluster", self.cluster(hosts=8), "--json"]
        self.assertEqual(self.purine(*arguments).error, "")
        shown, output = self.on_terminal("stderr", *arguments)
        self.assertEqual(json.loads(output)["device_count"], 8)
        self.assertRegex(shown, "^\rdividing the graph\033\\[K(\r(freezing|simulating): \\d+%, [\\d:]+( s)? left\033\\[K)*"
                                         "\r\033\\[K$")

    def test_too_little_memory(self):
        self.write_job(model={"name": "vgg16"}, data={"batch": 64})
        error = self.error_of("simulate", "job.toml", "--set", "data.folder=nowhere", "--cluster", self.cluster(memory=1), status=2)
        self.assertRegex(error, r"^\[job\] job.toml:\d+: data.batch is 64, and 0/cpu:0 needs \d+\.\d+ GiB, and has 1.00; hint: ")

    def test_mistakes(self):
        self.assertEqual(self.error_of("simulate", "lenet", status=2),
                         "[command] purine simulate: --cluster is required; hint: see purine simulate --help")
        self.assertEqual(self.error_of("simulate", "lenett", "--cluster", self.cluster(), status=2),
                         "[command] purine simulate: there is no model 'lenett'; hint: did you mean 'lenet'?")
        (self.folder / "bad.toml").write_text("[card.eth]\ngbit = 1\n", encoding="utf-8")
        self.assertEqual(self.error_of("simulate", "lenet", "--cluster", "bad.toml", status=2),
                         "[cluster] bad.toml:2: unknown key 'gbit' in [card.eth]; hint: did you mean 'gbit_per_s'?")
        for command in ("simulate", "plan"):
            self.assertEqual(self.error_of(command, "lenet", "--cluster", "none.toml", status=2),
                             "[cluster] none.toml: cannot open: No such file or directory")
        self.assertIn("[cluster] has no device 0/sim:0",
                      self.error_of("simulate", "lenet", "--cluster", "cluster.toml", "--devices", "sim:0", status=2))

    def test_costs_that_are_none(self):
        cluster = self.cluster()
        for content, problem in (("purine operator costs", "[cost table] costs: is not JSON (line 1, column 1); hint: purine bench "
                                  "MODEL --save FILE writes one"),
                                 ('{"format": "purine operator costs",\n "version": 1}', "[cost table] costs: cannot be read: key "
                                  "'machine' not found; hint: purine bench MODEL --save FILE writes one")):
            (self.folder / "costs").write_text(content, encoding="utf-8")
            self.assertEqual(self.error_of("simulate", "lenet", "--cluster", cluster, "--costs", "costs", status=2), problem)
        for command in ("simulate", "plan"):
            self.assertEqual(self.error_of(command, "lenet", "--cluster", cluster, "--costs", "none", status=2),
                             "[cost table] none: cannot open: No such file or directory")


if __name__ == "__main__":
    unittest.main()
