#include "purine/train/checkpoints.h"

#include <gtest/gtest.h>

#include <limits>

#include "purine/core/version.h"
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

GraphIdentity graph() {
  return {.hash = 2, .parts = {{"relu", {1, 5}}, {"variables", {4, 0xffffffffffffffff}}}};
}

TEST(CheckpointsTest, TheManifestGivesBackTaskAndSums) {
  const EpochSums sums{1.0 / 3, std::numeric_limits<double>::denorm_min(), 123};
  const io::Manifest manifest = make_manifest(job(), task(), sums, 0xdeadbeef, {.hash = 7});
  EXPECT_TRUE(task_of(manifest, "c") == task());
  EXPECT_EQ(epoch_sums_of(manifest, "c"), sums) << "to the bit";
  EXPECT_EQ(manifest.seed, 1u);
}

TEST(CheckpointsTest, ManifestsOfRunsThatComputeTheSameAreEqual) {
  Job other = job();
  other.train.workers = 4;
  other.train.run_folder = "elsewhere";
  other.data.folder = "moved";
  EXPECT_EQ(make_manifest(job(), task(), {}, 1, graph()), make_manifest(other, task(), {}, 1, graph()));
}

TEST(CheckpointsTest, TheManifestGivesBackAnEvaluation) {
  io::Manifest manifest = make_manifest(job(), task(), {}, 1, graph());
  manifest.iteration = 20;
  EXPECT_FALSE(evaluation_of(manifest, "c").has_value());
  for (const std::optional<double> top5 : {std::optional<double>(), std::optional<double>(2.0 / 3)}) {
    set_evaluation(manifest, {.step = 20,
                              .epoch = 1,
                              .images = 7,
                              .loss = 1.0 / 3,
                              .accuracy = 2.0 / 7,
                              .top5 = top5,
                              .seconds = 9});
    const std::optional<EvaluationReport> report = evaluation_of(manifest, "c");
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->step, 20);
    EXPECT_EQ(report->epoch, 1);
    EXPECT_EQ(report->images, 7);
    EXPECT_EQ(report->loss, 1.0 / 3) << "to the bit";
    EXPECT_EQ(report->accuracy, 2.0 / 7);
    EXPECT_EQ(report->top5, top5);
    EXPECT_EQ(manifest.score, 2.0 / 7);
  }
}

TEST(CheckpointsTest, ResumingChecksJobDataAndGraph) {
  io::Manifest manifest = make_manifest(job(), task(), {}, 1, graph());
  manifest.purine_version = build_id();
  LoadedJob now{.job = job(), .name = "job.toml"};
  EXPECT_NO_THROW(check_resumable(manifest, "c", now, 1, graph()));
  EXPECT_EQ(
      error_text([&] { check_resumable(manifest, "c", now, 9, graph()); }),
      "[job] job.toml: data.folder holds another training set than the run was started with; hint: name "
      "the folder of the same set, or start another run");
  GraphIdentity other = graph();
  other.hash = 3;
  other.parts["relu"] = {2, 6};
  EXPECT_EQ(error_text([&] { check_resumable(manifest, "c", now, 1, other); }),
            "[checkpoint] c: its graph is not the one that this job makes now: it has 1 relu operator, now "
            "there are 2; "
            "hint: start another run");
  manifest.purine_version = "0.0.9+0123456789ab";
  EXPECT_EQ(error_text([&] { check_resumable(manifest, "c", now, 1, other); }),
            "[checkpoint] c: its graph is not the one that this job makes now: it has 1 relu operator, now "
            "there are 2; "
            "hint: it was written by purine 0.0.9+0123456789ab, and this is " +
                std::string(build_id()) + "; go on with that one, or start another run");
  now.job.data.batch = 32;
  EXPECT_EQ(
      error_text([&] { check_resumable(manifest, "c", now, 1, graph()); }),
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
