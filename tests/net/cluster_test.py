"""Ranks on hosts of their own, with a network between them: namespaces that scripts/cluster makes."""
import os
import pathlib
import subprocess
import time
import unittest

import ranks

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "cluster"
SKIPPED = 77


class ClusterTest(ranks.RanksTest):
    """Skipped where no cluster can be made, too."""

    def start_cluster(self, *arguments, rate="1gbit", environment=None):
        self.name = f"test{os.getpid()}"
        command = [CLUSTER, "run", "--name", self.name, "--rate", rate, "--", ranks.RANK, *arguments]
        run = ranks.Run(command, environment or {})
        self.addCleanup(self.end, run)
        return run

    def end(self, run):
        """The script removes the namespaces when it is told to end, so that it is not killed at once."""
        run.process.terminate()
        try:
            run.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            run.kill()
        run.wait()

    def skip_without_cluster(self, run, error):
        if run.process.poll() == SKIPPED:
            self.skip(error.strip())

    def finish(self, run):
        status, output, error, _ = run.wait()
        self.skip_without_cluster(run, error)
        return status, output, error

    def rank_processes(self, run):
        try:
            return [run.rank_process(rank) for rank in (0, 1)]
        except AssertionError:
            self.skip_without_cluster(run, run.text(run.error))
            raise

    def link(self, action):
        subprocess.run([CLUSTER, action, self.name, "2"], check=True)

    def test_conforms_over_a_network(self):
        checks = ["random_traffic", "begin_from_listener", "gather", "announce", "links", "other_size", "observe"]
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
        # mpirun itself waits for the other host for longer, and hears nothing from it: the ranks are looked at.
        end = time.monotonic() + 20
        while any(pathlib.Path(f"/proc/{process}").exists() for process in processes):
            self.assertLess(time.monotonic(), end, "a rank is still there")
            time.sleep(0.05)
        self.assertIn("rank 0 failed: [rank 1] at host2, silent for longer than 2 s; the process is stopped or gone, or the "
                      "network is down\n", run.text(run.error))


if __name__ == "__main__":
    unittest.main()
