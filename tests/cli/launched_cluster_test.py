"""Training over hosts of their own, with a network between them."""
import re
import unittest

import launched  # says where cluster lies
from cluster import OnCluster
from command import COMMAND


class ClusterTest(OnCluster, launched.LaunchedTest):
    def start_cluster(self, *arguments):
        run = launched.Run(self.cluster_command("200mbit", COMMAND, *arguments), {}, self.folder)
        for cleanup in (run.output.close, run.error.close):
            self.addCleanup(cleanup)
        self.addCleanup(self.end, run)
        return run

    def on_cluster(self, *arguments):
        run = self.start_cluster(*arguments)
        run.process.wait()
        self.skip_without_cluster(run)
        return self.finish(run)

    def test_two_hosts_train_as_one_process_does(self):
        self.write_lenet()
        output, _ = self.on_cluster("train", "job.toml", "--stop-after", 6)
        lines = output.splitlines()
        for rank in (0, 1):
            self.assertRegex(lines[1 + rank], rf"^{rank} +host{rank + 1} +10\.77\.0\.{rank + 1} \(eth0\) +cpu:0 +\d+ ")
            self.assertTrue(any(re.match(rf"rank {rank} at host{rank + 1}: [\d.]+ s of transfers, ", line) for line in lines))
        self.on_cluster("train", "job.toml", "--resume")
        self.purine("train", "job.toml", "--run-folder", "one")
        self.ranks(2, "train", "job.toml", "--run-folder", "two")
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("two")[-1].read_bytes())

    def test_a_lost_link_ends_both_hosts_and_the_run_goes_on(self):
        self.write_lenet(train={"steps": 100000, "report_every": 1, "evaluate_every": 0}, parallel={"stall_limit": 2},
                         checkpoint={"every_epochs": 0, "every_steps": 5})
        run = self.start_cluster("train", "job.toml", "--json")
        try:
            run.wait_for_step(12)
        except AssertionError:
            self.skip_without_cluster(run)
            raise
        processes = run.rank_processes()
        self.assertEqual(sorted(processes), [0, 1])
        self.link("cut")
        self.assert_gone(processes.values())
        self.assertRegex(run.text(run.error), r"\[rank 1\] at host2, silent for longer than 2 s; .* \((after )?step \d+\)")
        self.end(run)
        last = int(self.checkpoints("runs/job")[-1].stem.removeprefix("step-"))
        self.ranks(2, "train", "job.toml", "--resume", "--stop-after", last + 3)
        self.ranks(2, "train", "job.toml", "--run-folder", "undisturbed", "--stop-after", last + 3)
        self.assertEqual(self.checkpoints("runs/job")[-1].read_bytes(), self.checkpoints("undisturbed")[-1].read_bytes())


if __name__ == "__main__":
    unittest.main()
