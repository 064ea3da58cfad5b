#include "purine/train/metrics_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_folder.h"

namespace purine::train {
namespace {

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(io::read_file(path));
  for (std::string line; std::getline(stream, line);) lines.push_back(parse_json(line));
  return lines;
}

void no_notice(std::string_view text) {
  ADD_FAILURE() << text;
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
    MetricsLog log(paths, std::nullopt, no_notice);
    write_run(log, 10, 10);
    log.epoch({.step = 10, .epoch = 0, .loss = 0.5, .accuracy = 0.25, .seconds = 2});
    log.evaluated(
        {.step = 10, .epoch = 0, .images = 8, .loss = 0.75, .accuracy = 0.5, .top5 = 1.0, .seconds = 3});
    log.flush();
  }
  const std::vector<nlohmann::json> lines = lines_of(paths.metrics());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], parse_json(
                          R"({"step":10,"phase":"train","epoch":1,"loss":0.5,"accuracy":0.25,
                              "learning_rate":0.1,"images_per_s":100.0,"data_wait":0.125})"));
  EXPECT_EQ(lines[1],
            parse_json(R"({"step":10,"phase":"epoch","epoch":1,"loss":0.5,"accuracy":0.25,"seconds":2.0})"));
  EXPECT_EQ(lines[2], parse_json(
                          R"({"step":10,"phase":"test","epoch":1,"loss":0.75,"accuracy":0.5,"top5":1.0,
                              "seconds":3.0})"));
  EXPECT_FALSE(std::filesystem::is_empty(paths.events()));
}

TEST(MetricsLogTest, AResumedRunDropsWhatItDoesAgain) {
  const test::TemporaryFolder folder;
  const RunPaths paths{folder.path()};
  {
    MetricsLog log(paths, std::nullopt, no_notice);
    write_run(log, 1, 6);
  }
  {
    MetricsLog log(paths, MetricsLog::Resumption{.step = 4, .evaluated = true}, no_notice);
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
      MetricsLog log(paths, std::nullopt, no_notice);
      write_run(log, 1, 2);
      log.evaluated({.step = 2, .epoch = 0, .images = 8, .loss = 0.75, .accuracy = 0.5});
    }
    MetricsLog(paths, MetricsLog::Resumption{.step = 2, .evaluated = evaluated}, no_notice);
    EXPECT_EQ(lines_of(paths.metrics()).size(), evaluated ? 3u : 2u);
  }
}

TEST(MetricsLogTest, ADiskThatIsFullForAWhileLosesNothing) {
  const test::TemporaryFolder folder;
  const RunPaths paths{folder.path()};
  const std::string text = test::text_from_child([&]() -> std::string {
    std::vector<std::string> notices;
    MetricsLog log(paths, std::nullopt, [&](std::string_view notice) { notices.emplace_back(notice); });
    write_run(log, 1, 2);
    test::limit_files(300);
    write_run(log, 3, 6);
    log.flush();
    if (!log.metrics_error() || !log.events_error()) return "the errors are not told";
    test::limit_files(RLIM_INFINITY);
    write_run(log, 7, 7);
    log.flush();
    if (log.metrics_error() || log.events_error()) return "records are missing";
    return fmt::format("{}", fmt::join(notices, "\n"));
  });
  const std::string start = "the run goes on, but not all of its metrics are on the disk: [file] ";
  const std::string end = ": cannot write: File too large";
  const std::filesystem::path events = std::filesystem::directory_iterator(paths.events())->path();
  EXPECT_EQ(text, start + paths.metrics().string() + end + "\n" + start + events.string() + end);
  std::vector<std::int64_t> steps;
  for (const nlohmann::json& line : lines_of(paths.metrics())) steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(MetricsLogTest, ADiskThatStaysFullLosesTheLastRecords) {
  const test::TemporaryFolder folder;
  const RunPaths paths{folder.path()};
  const std::string text = test::text_from_child([&]() -> std::string {
    int notices = 0;
    MetricsLog log(paths, std::nullopt, [&](std::string_view) { ++notices; });
    write_run(log, 1, 2);
    test::limit_files(300);
    write_run(log, 3, 10'000);  // more than are held
    log.flush();
    test::limit_files(RLIM_INFINITY);
    write_run(log, 10'001, 10'001);
    log.flush();
    if (!log.metrics_error() || !log.events_error()) return "the errors are not told";
    return fmt::format("{} notices", notices);
  });
  EXPECT_EQ(text, "2 notices");
  const std::vector<nlohmann::json> lines = lines_of(paths.metrics());
  EXPECT_EQ(lines.at(0).at("step"), 1);
  EXPECT_GT(lines.at(2).at("step"), 3);
  EXPECT_EQ(lines.back().at("step"), 10'001);
}

}  // namespace
}  // namespace purine::train
