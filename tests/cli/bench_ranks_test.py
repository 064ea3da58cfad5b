"""`purine bench` as several ranks."""
import json
import re
import unittest

from launched import LaunchedTest

PARAMETERS = 431080  # of LeNet


class BenchRanksTest(LaunchedTest):
    def bench(self, ranks, *options):
        output, _ = self.ranks(ranks, "bench", "lenet", "--batch", 8, "--steps", 8, "--warm-up", 1, *options)
        return output

    def report(self, ranks, *options):
        output = self.bench(ranks, "--json", *options)
        self.assertEqual(output.count("\n"), 1, "rank 0 alone speaks")
        return json.loads(output)

    def test_tells_of_each_rank_what_it_sent_and_what_that_exposed(self):
        report = self.report(2)
        self.assertEqual((report["devices"], report["scheme"], report["mesh"]), (["0/cpu:0", "1/cpu:0"], "data", "data=2"))
        self.assertGreater(report["images_per_s_median"], 0)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1])
        for rank in report["ranks"]:
            # The gradients once a step, and a little that the ranks say to each other.
            for way in ("bytes_sent", "bytes_received"):
                self.assertGreaterEqual(rank[way], 8 * 4 * PARAMETERS)
                self.assertLess(rank[way], 8 * 4 * PARAMETERS * 1.01)
            self.assertLessEqual(rank["transfer_seconds"], rank["seconds"])
            self.assertAlmostEqual(rank["exposed_seconds"], rank["transfer_seconds"] - rank["overlapped_seconds"], places=6)
            self.assertEqual((rank["variable_bytes"], rank["state_bytes"]), (2 * 4 * PARAMETERS, 4 * PARAMETERS))

    def test_a_sharded_update_divides_the_state(self):
        for ranks in (2, 4):
            report = self.report(ranks, "--scheme", "sharded")
            states = [rank["state_bytes"] for rank in report["ranks"]]
            self.assertEqual(sum(states), 4 * PARAMETERS)
            self.assertLess(max(states), 4 * PARAMETERS / ranks * 1.05)

    def test_text_and_traces(self):
        lines = self.bench(2, "--trace", "trace.json").splitlines()
        self.assertIn("2 devices: data parallelism over cpu:0 at each of 2 ranks (data=2)", lines)
        for rank in range(2):
            self.assertRegex(lines[rank - 3], rf"^rank {rank} at \S+: [\d.]+ s of transfers, [\d.]+% of it under operators, "
                             r"[\d.]+ s exposed; sent 13\.8 MB, received 13\.8 MB$")
        self.assertRegex(lines[-1], r"^a step took [\d.]+ ms and was predicted to take [\d.]+ ms \([+-][\d.]+%\); [\d.]+ times one device "
                         r"with its share of the batch, efficiency [\d.]+%$")
        for name, rank in (("trace.json", 0), ("trace.rank1.json", 1)):
            events = json.loads((self.folder / name).read_text(encoding="utf-8"))["traceEvents"]
            self.assertEqual({event["args"]["location"] for event in events if event["ph"] == "X"}, {f"{rank}/cpu:0"})

    def test_a_step_is_predicted_from_what_its_operators_took(self):
        for options in ([], ["--scheme", "sharded"], ["--inference"]):
            report = self.report(2, *options)
            self.assertAlmostEqual(report["step_seconds"], 8 / report["images_per_s_median"], delta=1e-6 * report["step_seconds"])
            self.assertGreater(report["predicted_step_seconds"], 0)
            self.assertAlmostEqual(report["speed_up"], 8 / report["step_seconds"] / report["one_device_images_per_s"], places=4)
            self.assertAlmostEqual(report["efficiency"], report["speed_up"] / 2, places=6)

    def test_a_trace_of_ranks_tells_what_other_schemes_would_take(self):
        self.bench(2, "--trace", "trace.json")
        why = self.purine("why", "trace.json", "--json").json()
        self.assertEqual([change["what"] for change in why["simulated"]["changes"]],
                         ["a batch of 16, twice as large", *(f"the scheme {name}" for name in ("sharded", "tensor", "hybrid", "pipeline"))])
        for change in [why["simulated"]["as_it_was"], *why["simulated"]["changes"]]:
            self.assertGreater(change["images_per_s"], 0)

    def test_a_mistake_is_told_once(self):
        _, error = self.ranks(2, "bench", "lenett", status=2)
        self.assertEqual(len(re.findall("there is no model 'lenett'", error)), 1, error)


if __name__ == "__main__":
    unittest.main()
