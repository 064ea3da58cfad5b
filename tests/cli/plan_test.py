"""`purine plan`: the scheme that trains a job the fastest on a cluster."""
import unittest

from command import CommandTest, write_idx

CLUSTER = """
name = "slow links"
[cpu.core]
cores = 1
f32_gflops = 100
memory_gb_per_s = 10
memory_gib = 16
[card.eth]
gbit_per_s = 1
latency_us = 50
[[host]]
count = 2
cpu = "core"
card = "eth"
"""


class PlanTest(CommandTest):
    def setUp(self):
        super().setUp()
        (self.folder / "cluster.toml").write_text(CLUSTER, encoding="utf-8")

    def test_prints_the_best_and_writes_the_section(self):
        text = self.purine("plan", "alexnet", "--batch", "64", "--cluster", "cluster.toml", "--top", "3", "--output", "section.toml").output
        lines = text.splitlines()
        self.assertRegex(lines[1], r" hybrid.* on 0/cpu:0,1/cpu:0$")
        self.assertRegex(text, r"\n\d+ plans were simulated; \d+ more can't be\n")
        plans = lines[1:lines.index("")]
        self.assertEqual(len(plans), 4, "the best three, and what they are compared with")
        self.assertRegex(plans[-1], r" data on 0/cpu:0,1/cpu:0$")
        self.assertEqual(len({tuple(plan.split()[:6]) for plan in plans}), 4, "no two that come to the same")
        section = (self.folder / "section.toml").read_text(encoding="utf-8")
        self.assertTrue(text.endswith(section))
        self.assertTrue(section.startswith('[parallel]\nscheme = "hybrid"\ndevices = "0/cpu:0,1/cpu:0"\n'), section)

    def test_its_answer_is_what_simulate_says_of_it(self):
        write_idx(self.folder / "set")
        self.write_job()
        answer = self.purine("plan", "job.toml", "--cluster", "cluster.toml", "--json").json()
        plans = [plan for plan in answer["plans"] if "obstacle" not in plan]
        self.assertEqual([plan["step_seconds"] for plan in plans], sorted(plan["step_seconds"] for plan in plans))
        data = next(plan for plan in plans if plan["plan"].startswith("data on"))
        simulated = self.purine("simulate", "job.toml", "--cluster", "cluster.toml", "--steps", "3", "--warm-up", "1", "--json").json()
        self.assertAlmostEqual(data["step_seconds"], simulated["step_seconds"])

    def test_where_nothing_fits(self):
        (self.folder / "small.toml").write_text(CLUSTER.replace("memory_gib = 16", "memory_gib = 0.1"), encoding="utf-8")
        error = self.error_of("plan", "vgg16", "--batch", "8", "--cluster", "small.toml", status=1)
        self.assertRegex(error, r"^\[plan\] there is none: data.batch is 8, and 0/cpu:0 needs \d+\.\d+ GiB, and has 0.10; hint: ")


if __name__ == "__main__":
    unittest.main()
