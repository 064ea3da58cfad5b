"""Ranks on hosts of their own, with a network between them."""
import os
import re
import time
import unittest

import ranks  # says where cluster lies
from cluster import OnCluster


class ClusterTest(OnCluster, ranks.RanksTest):
    def start_cluster(self, *arguments, rate="1gbit", environment=None):
        run = ranks.Run(self.cluster_command(rate, ranks.RANK, *arguments), environment or {})
        self.addCleanup(self.end, run)
        return run

    def finish(self, run):
        status, output, error, _ = run.wait()
        self.skip_without_cluster(run)
        return status, output, error

    def rank_processes(self, run):
        try:
            return [run.rank_process(rank) for rank in (0, 1)]
        except AssertionError:
            self.skip_without_cluster(run)
            raise

    def test_conforms_over_a_network(self):
        checks = ["random_traffic", "begin_from_listener", "gather", "announce", "links", "fit", "other_size", "observe"]
        status, output, error = self.finish(self.start_cluster("check", *checks))
        self.assertEqual(status, 0, error)
        for rank in (0, 1):
            for check in checks:
                self.assertIn(f"rank {rank} passed {check}\n", output)

    def test_describes_hosts_and_their_network(self):
        status, output, error = self.finish(self.start_cluster("table", rate="200mbit"))
        self.assertEqual(status, 0, error)
        for rank in (0, 1):
            self.assertRegex(output, rf"(?m)^{rank} +host{rank + 1} +10\.77\.0\.{rank + 1} \(eth0\) +cpu:{rank} +8 ")

    def test_the_system_keeps_what_goes_in_milliseconds(self):
        status, output, error = self.finish(self.start_cluster("unsent", rate="200mbit"))
        self.assertEqual(status, 0, error)
        bounds = {rank: list(map(int, bounds.split())) for rank, bounds in re.findall(r"rank (\d) keeps ([\d ]+)", output)}
        self.assertEqual(sorted(bounds), ["0", "1"])
        for bound in bounds.values():
            self.assertGreaterEqual(min(bound), 65536)
            self.assertLess(max(bound), 500_000)  # not all that a buffer holds

    def test_pins_each_host_to_a_core_of_its_own(self):
        own = sorted(os.sched_getaffinity(0))
        show = 'echo "$(hostname) $(grep Cpus_allowed_list /proc/self/status | cut -f 2)"'
        run = ranks.Run(self.cluster_command("1gbit", "sh", "-c", show, options=["--pin"]), {})
        self.addCleanup(self.end, run)
        status, output, error = self.finish(run)
        self.assertEqual(status, 0, error)
        self.assertEqual(sorted(output.splitlines()), [f"host1 {own[0]}", f"host2 {own[1 % len(own)]}"])

    def test_waits_for_a_link_that_comes_back(self):
        run = self.start_cluster("steps", "300", "nothing", environment={"STALL_LIMIT_MS": "20000"})
        self.rank_processes(run)
        time.sleep(0.5)
        self.link("cut")
        time.sleep(1)
        self.link("heal")
        status, output, error = self.finish(run)
        self.assertEqual(status, 0, error)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} is done\n", output)

    def test_both_sides_of_a_lost_link_end(self):
        run = self.start_cluster("steps", "1000000", "nothing", environment={"STALL_LIMIT_MS": "2000"})
        processes = self.rank_processes(run)
        time.sleep(0.5)
        self.link("cut")
        self.assert_gone(processes)
        self.assertIn("rank 0 failed: [rank 1] at host2, silent for longer than 2 s; the process is stopped or gone, or the "
                      "network is down\n", run.text(run.error))


if __name__ == "__main__":
    unittest.main()
