"""What every endpoint must do, of the one over MPI, whose ranks are processes."""
import os
import unittest

import ranks

CHECKS = ["random_traffic", "begin_from_listener", "gather", "announce", "links", "fit", "other_size", "observe"]


class MpiTest(ranks.RanksTest):
    def expect_checks(self, count, checks, environment):
        status, output, error, _ = self.run_ranks(count, "check", *checks, environment=environment)
        passed = {f"rank {rank} passed {check}" for rank in range(count) for check in checks}
        self.assertEqual(passed - set(output.splitlines()), set(), error)
        return status

    def test_conforms_with_two_ranks(self):
        self.assertEqual(self.expect_checks(2, CHECKS, {}), 0)

    def test_conforms_with_three_ranks(self):
        self.assertEqual(self.expect_checks(3, CHECKS, {}), 0)

    def test_conforms_with_four_ranks_over_tcp(self):
        self.assertEqual(self.expect_checks(4, CHECKS, ranks.TCP), 0)

    def test_conforms_with_chunks_of_odd_size(self):
        self.assertEqual(self.expect_checks(2, CHECKS, ranks.TCP | {"CHUNK_BYTES": "9973"}), 0)

    def share_a_core(self):
        """Large messages then wait for the next look of the endpoint's thread."""
        own = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, own)
        os.sched_setaffinity(0, {min(own)})

    def test_conforms_where_all_share_a_core(self):
        self.share_a_core()
        self.assertEqual(self.expect_checks(2, CHECKS, ranks.TCP), 0)

    def test_failure_reaches_all_ranks(self):
        for environment in ({}, ranks.TCP):
            self.assertNotEqual(self.expect_checks(4, ["fail"], environment), 0)
        self.share_a_core()
        self.assertNotEqual(self.expect_checks(2, ["fail"], {}), 0)

    def test_describes_its_ranks(self):
        status, output, error, _ = self.run_ranks(3, "table")
        self.assertEqual(status, 0, error)
        lines = output[output.index("rank  host"):].splitlines()
        self.assertRegex(lines[0], r"^rank +host +address +devices +cores +to the next rank$")
        for rank, line in enumerate(lines[1:]):
            self.assertRegex(line, rf"^{rank} +\S+ +(-|[\d.]+ \(\S+\)) +cpu:{rank} +8 +\d+\.\d\d Gbit/s, \d+ us$")
        self.assertEqual(len(lines), 4)


if __name__ == "__main__":
    unittest.main()
