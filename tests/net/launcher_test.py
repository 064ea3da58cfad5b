"""Processes that a launcher has started, or nothing has: here without one, whose variables are set by hand."""
import unittest

import ranks


class LauncherTest(ranks.RanksTest):
    def run_alone(self, **environment):
        run = ranks.Run([ranks.RANK, "table"], environment)
        self.addCleanup(run.kill)
        return run.wait()

    def test_a_process_that_nothing_started_is_alone(self):
        self.assertEqual(self.run_alone()[:3], (0, "alone\n", ""))

    def test_one_task_is_alone(self):
        self.assertEqual(self.run_alone(OMPI_COMM_WORLD_SIZE="1")[:3], (0, "alone\n", ""))

    def test_tasks_that_do_not_know_each_other_are_an_error(self):
        status, output, error, _ = self.run_alone(SLURM_STEP_NUM_TASKS="2")
        self.assertEqual((status, output), (1, ""))
        self.assertRegex(error, r"^\[network\] srun has started 2 tasks, but MPI knows of 1; hint: start it with "
                                r"`srun --mpi=pmix`, or another interface of `srun --mpi=list` that this MPI speaks, or "
                                r"with mpirun: .+\n$")
        error = self.run_alone(PMI_SIZE="3")[2]
        self.assertRegex(error, r"mpiexec has started 3 tasks, but MPI knows of 1; hint: use the launcher of the MPI that "
                                r"Purine is built with: .+\n$")


if __name__ == "__main__":
    unittest.main()
