#include "purine/train/scheduling_report.h"

#include <gtest/gtest.h>

#include "purine/models/models.h"
#include "purine/train/parallel_section.h"
#include "purine/train/placed_graph.h"

namespace purine::train {
namespace {

TEST(SchedulingReportTest, TheTextTellsTheChoiceAndTheBestOfTheOtherWays) {
  SchedulingReport report{{8, {{1, 0.5}, {2, 0.45}, {4, 0.41}, {8, 0.4}}}, 2, 0.42};
  EXPECT_EQ(
      scheduling_text(report),
      "operators in up to 8 parts; predicted of whole operators side by side: 1.25 times as long, of the "
      "batch divided over cpu:0-1: 1.05 times");
  report.choice.parts = 1;
  report.workers = 4;
  EXPECT_EQ(
      scheduling_text(report),
      "whole operators side by side; predicted of operators in up to 8 parts: 0.80 times as long, of the "
      "batch divided over cpu:0-3: 0.84 times");
  report.data_parallel_seconds.reset();
  EXPECT_EQ(scheduling_text(report),
            "whole operators side by side; predicted of operators in up to 8 parts: 0.80 times as long");
  report.choice = {8, {}};
  EXPECT_EQ(scheduling_text(report), "operators in up to 8 parts");
  report.workers = 1;
  EXPECT_EQ(scheduling_text(report), "");
}

SchedulingReport report_of(const std::string& devices, int workers, std::int64_t batch) {
  LoadedJob loaded;
  loaded.job.model = {"lenet", 10};
  loaded.job.data.batch = batch;
  loaded.job.parallel.devices = devices;
  const ParallelSetup setup = parallel_setup(loaded);
  Runtime runtime({.workers = workers, .devices = setup.devices()});
  const BuildJob build = training_on(images_of_model(loaded));
  PlacedGraph placed(setup, [&](Graph& graph, Location device) { build(loaded.job, graph, device); });
  const Session session(runtime, placed.running());
  return report_scheduling(session, runtime, loaded, build);
}

// Divided over as many devices a network's operators do the same work in all, but for its sums and copies.
TEST(SchedulingReportTest, TheBatchDividedOverWorkersTakesAboutItsShare) {
  const SchedulingReport report = report_of("cpu:0", 2, 64);
  ASSERT_TRUE(report.data_parallel_seconds.has_value());
  double least = report.choice.candidates.front().step_seconds;
  for (const auto& candidate : report.choice.candidates) least = std::min(least, candidate.step_seconds);
  EXPECT_GT(*report.data_parallel_seconds, 0.9 * least);
  EXPECT_LT(*report.data_parallel_seconds, 1.5 * least);
}

TEST(SchedulingReportTest, WhatIsNotPossibleIsNotPredicted) {
  EXPECT_FALSE(report_of("cpu:0", 1, 64).data_parallel_seconds.has_value());
  EXPECT_FALSE(report_of("cpu:0", 4, 3).data_parallel_seconds.has_value()) << "fewer samples than workers";
  EXPECT_FALSE(report_of("cpu:0-1", 2, 64).data_parallel_seconds.has_value())
      << "devices are divided already";
  EXPECT_FALSE(report_of("emu:0", 2, 64).data_parallel_seconds.has_value());
}

}  // namespace
}  // namespace purine::train
