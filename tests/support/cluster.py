"""Runs on hosts of their own, with a network between them: namespaces that scripts/cluster makes."""
import os
import pathlib
import subprocess
import time

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "cluster"
SKIPPED = 77


class OnCluster:
    """What tests of two such hosts have in common; beside a TestCase that has `skip`. Those tests are skipped where no cluster
    can be made; with PURINE_REQUIRE_NETWORK in the environment that is a failure."""

    def cluster_command(self, rate, *command, options=()):
        """What runs a command on both hosts, over a network of this rate; with more options of scripts/cluster."""
        self.cluster = f"test{os.getpid()}"
        return [str(CLUSTER), "run", "--name", self.cluster, "--rate", rate, *options, "--", *map(str, command)]

    def end(self, run):
        """The script removes the namespaces when it is told to end, so that it is not killed at once."""
        run.process.terminate()
        try:
            run.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            run.kill()
        run.wait()

    def skip_without_cluster(self, run):
        """Of a run that has ended."""
        if run.process.poll() == SKIPPED:
            self.skip(run.text(run.error).strip())

    def link(self, action):
        """Cuts the second host off, or heals it."""
        subprocess.run([CLUSTER, action, self.cluster, "2"], check=True)

    def assert_gone(self, processes):
        """mpirun itself waits for a host that was cut off for longer, and hears nothing from it: the ranks are looked at."""
        end = time.monotonic() + 20
        while any(pathlib.Path(f"/proc/{process}").exists() for process in processes):
            self.assertLess(time.monotonic(), end, "a rank is still there")
            time.sleep(0.05)
