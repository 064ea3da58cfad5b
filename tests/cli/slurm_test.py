"""The command as ranks that srun starts, in a Slurm that the test makes for itself."""
import os
import subprocess
import unittest

from command import COMMAND
from launched import LaunchedTest, mpirun
import slurm


class SlurmTest(LaunchedTest):
    """Skipped where no Slurm can be started; with PURINE_REQUIRE_SLURM in the environment that is a failure."""

    def setUp(self):
        super().setUp()
        reason = slurm.missing()
        if reason is not None:
            (self.fail if os.environ.get("PURINE_REQUIRE_SLURM") else self.skipTest)(reason)
        self.slurm = slurm.Slurm(self.folder / "slurm", tasks=2)
        self.addCleanup(self.slurm.end)
        version = subprocess.run([mpirun.MPIEXEC, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.is_open_mpi = "Open MPI" in version or "OpenRTE" in version

    def srun(self, interface, *arguments):
        return self.begin([slurm.find("srun"), f"--mpi={interface}", "--ntasks=2", COMMAND, *map(str, arguments)],
                          self.slurm.environment)

    def test_two_tasks_train_as_one_process_does(self):
        self.write_lenet()
        self.purine("train", "job.toml", "--run-folder", "one")
        run = self.srun("pmix" if self.is_open_mpi else "pmi2", "train", "job.toml", "--run-folder", "two")
        output, _ = self.finish(run)
        self.assertIn("2 devices: data parallelism over cpu:0 at each of 2 ranks (data=2)", output.splitlines())
        self.assertLessEqual(self.difference("two", "one"), 1e-6)

    def test_tasks_that_can_not_find_each_other_end(self):
        """Open MPI says so by itself, as soon as it begins."""
        self.write_lenet()
        run = self.srun("none", "train", "job.toml")
        status, output, error, _ = run.wait()
        self.assertEqual((status, output), (1, ""))
        self.assertRegex(error, "OMPI was not built with SLURM's PMI support" if self.is_open_mpi else
                         r"\[network\] srun has started 2 tasks, but MPI knows of 1; hint: start it with `srun --mpi=pmix`")
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main()
