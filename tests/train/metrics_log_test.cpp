#include "purine/train/metrics_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "purine/io/file.h"
#include "tests/support/temporary_folder.h"

namespace purine::train {
namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(io::read_file(path));
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

void write_run(MetricsLog& log, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first; step <= last; ++step) {
    log.progress({.step = step,
                  .epoch = 0,
                  .loss = 0.5,
                  .accuracy = 0.25,
                  .learning_rate = 0.1,
                  .images_per_second = 100,
                  .wait_share = 0.125,
                  .seconds_left = 1});
  }
}

TEST(MetricsLogTest, WritesALineForEachReport) {
  const test::TemporaryFolder folder;
  const RunPaths paths{folder.path()};
  {
    MetricsLog log(paths, std::nullopt);
    write_run(log, 10, 10);
    log.epoch({.step = 10, .epoch = 0, .loss = 0.5, .accuracy = 0.25, .seconds = 2});
    log.evaluated(
        {.step = 10, .epoch = 0, .images = 8, .loss = 0.75, .accuracy = 0.5, .top5 = 1.0, .seconds = 3});
    log.ended({});
  }
  const std::vector<nlohmann::json> lines = lines_of(paths.metrics());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], nlohmann::json::parse(
                          R"({"step":10,"phase":"train","epoch":1,"loss":0.5,"accuracy":0.25,
                              "learning_rate":0.1,"images_per_s":100.0,"data_wait":0.125})"));
  EXPECT_EQ(lines[1],
            nlohmann::json::parse(
                R"({"step":10,"phase":"epoch","epoch":1,"loss":0.5,"accuracy":0.25,"seconds":2.0})"));
  EXPECT_EQ(lines[2], nlohmann::json::parse(
                          R"({"step":10,"phase":"test","epoch":1,"loss":0.75,"accuracy":0.5,"top5":1.0,
                              "seconds":3.0})"));
  EXPECT_FALSE(std::filesystem::is_empty(paths.events()));
}

TEST(MetricsLogTest, AResumedRunDropsWhatItDoesAgain) {
  const test::TemporaryFolder folder;
  const RunPaths paths{folder.path()};
  {
    MetricsLog log(paths, std::nullopt);
    write_run(log, 1, 6);
  }
  {
    MetricsLog log(paths, MetricsLog::Resumption{.step = 4, .evaluated = true});
    write_run(log, 5, 7);
  }
  std::vector<std::int64_t> steps;
  for (const nlohmann::json& line : lines_of(paths.metrics())) steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(MetricsLogTest, AnEvaluationThatTheCheckpointDoesNotKnowIsDropped) {
  for (const bool evaluated : {false, true}) {
    const test::TemporaryFolder folder;
    const RunPaths paths{folder.path()};
    {
      MetricsLog log(paths, std::nullopt);
      write_run(log, 1, 2);
      log.evaluated({.step = 2, .epoch = 0, .images = 8, .loss = 0.75, .accuracy = 0.5});
    }
    MetricsLog(paths, MetricsLog::Resumption{.step = 2, .evaluated = evaluated});
    EXPECT_EQ(lines_of(paths.metrics()).size(), evaluated ? 3u : 2u);
  }
}

}  // namespace
}  // namespace purine::train
