"""A rank that dies, leaves or stops: all others end in time, with a status that isn't 0 and a reason."""
import os
import signal
import time
import unittest

import ranks

ENDLESS = ["steps", "1000000", "nothing"]
STALL_LIMIT = {"STALL_LIMIT_MS": "2000"}
# From the fault to the end of all ranks, at most: the stall limit, the farewell of 2 s, and a busy machine.
IN_TIME = 20


class FaultsTest(ranks.RanksTest):
    def expect_failure(self, run, begin, *lines):
        status, output, error, _ = run.wait()
        self.assertLess(time.monotonic() - begin, IN_TIME)
        self.assertNotEqual(status, 0)
        self.assertNotIn("is done", output)
        for line in lines:
            self.assertRegex(error, line)

    def test_killed_rank(self):
        run = self.start(3, *ENDLESS, environment=STALL_LIMIT)
        process = run.rank_process(1)
        time.sleep(0.5)
        os.kill(process, signal.SIGKILL)
        # The launcher says it first, and ends the others.
        self.expect_failure(run, time.monotonic(), r"(rank 1 .* signal 9|rank \d failed: \[rank 1\]|KILLED BY SIGNAL: 9)")

    def test_rank_that_exits_with_status_0(self):
        self.expect_failure(self.start(3, "steps", "100", "exit", environment=STALL_LIMIT), time.monotonic(),
                            r"(rank 1 |\[rank 1\])")

    def test_rank_that_returns_early(self):
        run = self.start(3, "steps", "100", "return", environment=STALL_LIMIT)
        self.expect_failure(run, time.monotonic(),
                            r"rank 0 failed: \[rank 1\] at \S+, left the run while other ranks go on\n")

    def test_rank_that_stops(self):
        run = self.start(3, *ENDLESS, environment=STALL_LIMIT)
        process = run.rank_process(1)
        time.sleep(0.5)
        os.kill(process, signal.SIGSTOP)
        self.expect_failure(run, time.monotonic(),
                            r"rank [02] failed: \[rank 1\] at \S+, silent for longer than 2 s; the process is stopped or gone, "
                            r"or the network is down\n")

    def test_rank_that_stops_and_goes_on_in_time(self):
        run = self.start(3, "steps", "200", "nothing", environment={"STALL_LIMIT_MS": "10000"})
        process = run.rank_process(1)
        time.sleep(0.3)
        os.kill(process, signal.SIGSTOP)
        time.sleep(2)
        os.kill(process, signal.SIGCONT)
        status, output, error, seconds = run.wait()
        self.assertEqual(status, 0, error)
        self.assertGreater(seconds, 2)
        for rank in range(3):
            self.assertIn(f"rank {rank} is done\n", output)


if __name__ == "__main__":
    unittest.main()
