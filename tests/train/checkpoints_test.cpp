#include "purine/train/checkpoints.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::train {
namespace {

using test::error_text;

Job job() {
  Job job;
  job.model.name = "lenet";
  job.data.folder = "shapes";
  return job;
}

Task task() {
  Task task;
  task.image = {3, 32, 24};
  task.classes = 4;
  task.class_names = {"with \"quotes\"", "ümlaut", "new\nline"};
  return task;
}

TEST(CheckpointsTest, TheManifestGivesBackTaskAndSums) {
  const EpochSums sums{1.0 / 3, std::numeric_limits<double>::denorm_min(), 123};
  const io::Manifest manifest = make_manifest(job(), task(), sums, 0xdeadbeef, 7);
  EXPECT_TRUE(task_of(manifest, "c") == task());
  EXPECT_EQ(epoch_sums_of(manifest, "c"), sums) << "to the bit";
  EXPECT_EQ(manifest.seed, 1u);
}

TEST(CheckpointsTest, ManifestsOfRunsThatComputeTheSameAreEqual) {
  Job other = job();
  other.train.workers = 4;
  other.train.run_folder = "elsewhere";
  other.data.folder = "moved";
  EXPECT_EQ(make_manifest(job(), task(), {}, 1, 2), make_manifest(other, task(), {}, 1, 2));
}

TEST(CheckpointsTest, ResumingChecksJobDataAndGraph) {
  const io::Manifest manifest = make_manifest(job(), task(), {}, 1, 2);
  LoadedJob now{.job = job(), .name = "job.toml"};
  EXPECT_NO_THROW(check_resumable(manifest, "c", now, 1, 2));
  EXPECT_EQ(
      error_text([&] { check_resumable(manifest, "c", now, 9, 2); }),
      "[job] job.toml: data.folder holds another training set than the run was started with; hint: name "
      "the folder of the same set, or start another run");
  EXPECT_EQ(error_text([&] { check_resumable(manifest, "c", now, 1, 9); }).substr(0, 68),
            "[checkpoint] c: its graph is not the one that this job makes now; hi");
  now.job.data.batch = 32;
  EXPECT_EQ(
      error_text([&] { check_resumable(manifest, "c", now, 1, 2); }),
      "[job] job.toml: data.batch was 64 when the run was started, and is 32 now; hint: resume with the "
      "same value, or start another run in another run folder");
}

TEST(CheckpointsTest, AManifestOfSomethingElse) {
  io::Manifest manifest;
  EXPECT_EQ(error_text([&] { task_of(manifest, "c"); }),
            "[checkpoint] c: has no entry 'task'; hint: it is not one of `purine train`");
  manifest.extra["task"] = "{}";
  EXPECT_TRUE(error_text([&] { task_of(manifest, "c"); })
                  .starts_with("[checkpoint] c: its entry 'task' cannot "
                               "be read: "));
}

TEST(CheckpointsTest, TheNewestOneIsMeant) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(find_checkpoint(folder.path(), "given.safetensors"), "given.safetensors");
  EXPECT_EQ(error_text([&] { find_checkpoint(folder.path(), {}); }),
            "[run folder] " + folder.path().string() +
                ": holds no checkpoint yet; hint: name a run's folder, or a checkpoint with --checkpoint");
  io::Checkpoint checkpoint;
  for (const std::int64_t iteration : {3, 20}) {
    checkpoint.manifest.iteration = iteration;
    io::save_checkpoint(folder.path() / "checkpoints", checkpoint);
  }
  EXPECT_EQ(find_checkpoint(folder.path(), {}).filename(), "step-00000020.safetensors");
}

}  // namespace
}  // namespace purine::train
