"""Training within train.memory_limit, from the command line."""
import unittest

from command import CommandTest, write_idx


class MemoryLimitTest(CommandTest):
    def setUp(self):
        super().setUp()
        write_idx(self.folder / "set", training=80, test=20)  # the last batch of 32 has 16
        self.write_job(data={"batch": 32}, train={"epochs": 2, "report_every": 1})

    def train(self, name, *arguments):
        """Trains; returns what the run says at its start, its notes and its checkpoints' bytes."""
        events = self.purine("train", "job.toml", "--json", "--run-folder", name, *arguments).json_lines()
        notes = [event["text"] for event in events if event["event"] == "note"]
        return events[0], notes, [path.read_bytes() for path in self.checkpoints(name)]

    def expect_the_same_within_less(self, name, *arguments):
        """Trains with and without a limit, and returns the limit."""
        start, notes, without = self.train(f"{name}-without", *arguments)
        self.assertEqual((notes, len(without)), ([], 2))
        limit = 0.95 * start["step_bytes"]
        setting = f"train.memory_limit={limit / 1e6}"
        start, notes, within = self.train(f"{name}-within", "--set", setting, *arguments)
        self.assertLessEqual(start["step_bytes"], limit)
        self.assertRegex("\n".join(notes), r"^to fit into the memory limit, (\d+ operators? runs? again for the backward pass|storage is reused sooner).*: "
                                           r"a step needs [\d.]+ MB instead of [\d.]+ MB$")
        self.assertEqual(within, without)
        return setting

    def test_a_run_within_a_limit_gives_the_same_bytes(self):
        setting = self.expect_the_same_within_less("one")
        # A run may go on within a limit that it began without.
        self.train("resumed", "--stop-after", 4)
        self.train("resumed", "--resume", "--set", setting)
        self.assertEqual(self.checkpoints("resumed")[-1].read_bytes(), self.checkpoints("one-without")[-1].read_bytes())

    def test_the_limit_is_that_of_all_devices_of_a_process(self):
        for name, devices in (("cores", "cpu:0,cpu:1"), ("accelerators", "emu:0-1")):
            self.expect_the_same_within_less(name, "--devices", devices)

    def test_a_limit_that_cannot_hold_is_refused_before_anything_is_written(self):
        for devices in ("cpu:0", "cpu:0-1"):
            self.assertRegex(self.error_of("train", "job.toml", "--devices", devices, "--set", "train.memory_limit=0.1", status=2),
                             r"^\[job\] job\.toml:6: data\.batch is 32, and a step needs [\d.]+ MB, or [\d.]+ MB where activations are computed again instead of "
                             r"being kept( and storage is reused sooner)?; the limit is 0\.1 MB; hint: raise the limit, or take a "
                             r"smaller batch$")
            self.assertFalse((self.folder / "runs").exists())

    def test_a_network_with_nothing_to_compute_again_says_so(self):
        self.write_job(model={"name": "lenet"}, data={"batch": 2})
        self.assertRegex(self.error_of("train", "job.toml", "--set", "train.memory_limit=1", status=2),
                         r"^\[job\] job\.toml:6: data\.batch is 2, and a step needs [\d.]+ MB, or [\d.]+ MB where storage is reused sooner; the "
                         r"limit is 1\.0 MB; hint: ")


if __name__ == "__main__":
    unittest.main()
