"""Starts a test's ranks with mpirun, and ends them whatever happens."""
import os
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import mpirun
from mpirun import MPIEXEC, TCP  # noqa: F401

RANK = os.environ["PURINE_NET_RANK"]


class Run(mpirun.Run):
    """The ranks while they run."""

    def rank_process(self, rank):
        """The process of a rank, as soon as it has said it."""
        while self.process.poll() is None:
            found = re.search(rf"^rank {rank} of \d+ is process (\d+) ", self.text(self.output), re.MULTILINE)
            if found:
                return int(found[1])
            time.sleep(0.01)
        raise AssertionError("the ranks have ended\n" + self.text(self.error))


class RanksTest(unittest.TestCase):
    """Skipped where there is no MPI; with PURINE_REQUIRE_NETWORK in the environment that is a failure."""

    def skip(self, reason):
        if os.environ.get("PURINE_REQUIRE_NETWORK"):
            self.fail(reason)
        self.skipTest(reason)

    def setUp(self):
        if not MPIEXEC:
            self.skip("this build has no MPI")

    def start(self, ranks, *arguments, environment=None):
        run = Run([MPIEXEC, "-n", str(ranks), RANK, *arguments], environment or {})
        self.addCleanup(run.output.close)
        self.addCleanup(run.error.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def run_ranks(self, ranks, *arguments, environment=None):
        return self.start(ranks, *arguments, environment=environment).wait()
