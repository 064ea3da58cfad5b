#include "purine/io/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "purine/core/json_helpers.h"
#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::error_text;
using test::TemporaryFolder;
using test::write_plain_file;
using Json = nlohmann::json;

TEST(MetricsTest, WritesAnObjectALine) {
  const TemporaryFolder folder;
  MetricsWriter writer = MetricsWriter::create(folder / "metrics.jsonl");
  writer.write(
      0, {{"loss", 0.1F}, {"rate", 1e-5}, {"images", std::int64_t{64}}, {"phase", std::string("train")}});
  writer.write(-1, {});
  writer.write(1, {{"a \"b\"", std::string("c\n")}});
  writer.sync();
  EXPECT_EQ(read_file(folder / "metrics.jsonl"),
            "{\"step\":0,\"loss\":0.1,\"rate\":1e-05,\"images\":64,\"phase\":\"train\"}\n"
            "{\"step\":-1}\n"
            "{\"step\":1,\"a \\\"b\\\"\":\"c\\n\"}\n");
}

TEST(MetricsTest, NumbersKeepTheirExactValue) {
  const TemporaryFolder folder;
  MetricsWriter writer = MetricsWriter::create(folder / "metrics.jsonl");
  std::mt19937_64 random(1);
  std::vector<double> doubles{0.0, -0.0, std::numeric_limits<double>::denorm_min(),
                              std::numeric_limits<double>::max(), 1.0 / 3};
  std::vector<float> floats{0.0F, -0.0F, std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max(), 1.0F / 3};
  while (doubles.size() < 500) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) doubles.push_back(number);
  }
  while (floats.size() < doubles.size()) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(number)) floats.push_back(number);
  }
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    writer.write(
        std::numeric_limits<std::int64_t>::max(),
        {{"double", doubles[i]}, {"float", floats[i]}, {"whole", std::numeric_limits<std::int64_t>::min()}});
  }
  std::istringstream lines(read_file(folder / "metrics.jsonl"));
  std::string line;
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const Json record = parse_json(line);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(record["double"].get<double>()),
              std::bit_cast<std::uint64_t>(doubles[i]))
        << line;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(record["float"].get<float>()),
              std::bit_cast<std::uint32_t>(floats[i]))
        << line;
    EXPECT_EQ(record["whole"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(record["step"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  }
}

TEST(MetricsTest, NumbersThatAreNotFiniteAreTexts) {
  const TemporaryFolder folder;
  MetricsWriter writer = MetricsWriter::create(folder / "metrics.jsonl");
  const double infinity = std::numeric_limits<double>::infinity();
  writer.write(3, {{"a", std::numeric_limits<float>::quiet_NaN()}, {"b", infinity}, {"c", -infinity}});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"),
            "{\"step\":3,\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\"}\n");
}

TEST(MetricsTest, RefusesNamesThatComeTwiceAndFilesThatExist) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsWriter writer = MetricsWriter::create(path);
  EXPECT_EQ(error_text([&] {
              writer.write(1, {{"a", 1.0}, {"a", 2.0}});
            }),
            "[metrics] " + path + ": a record has the name `a` twice");
  EXPECT_EQ(error_text([&] {
              writer.write(1, {{"step", 1.0}});
            }),
            "[metrics] " + path + ": a record has the name `step` twice");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(
      error_text([&] { MetricsWriter::create(path); }),
      "[metrics] " + path + ": the file exists already; hint: resume its run, or write to another folder");
}

TEST(MetricsTest, ResumeCutsWhatIsDoneAgain) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string records =
      "{\"step\":1}\n{\"step\":2,\"a\":1}\n{\"step\":2,\"b\":1}\n{\"step\":3}\n{\"step\":4}\n";
  const std::string half = "{\"step\":5,\"lo";
  struct Case {
    std::int64_t step;
    std::string kept;
  };
  for (const Case& expected : {Case{3, "{\"step\":1}\n{\"step\":2,\"a\":1}\n{\"step\":2,\"b\":1}\n"},
                               Case{2, "{\"step\":1}\n"}, Case{0, ""}, Case{5, records}, Case{9, records}}) {
    write_plain_file(path, records + half);
    MetricsWriter writer = MetricsWriter::resume(path, expected.step);
    writer.write(expected.step, {});
    EXPECT_EQ(read_file(path), expected.kept + "{\"step\":" + std::to_string(expected.step) + "}\n");
  }
  MetricsWriter::resume(folder / "new.jsonl", 3).write(3, {});
  EXPECT_EQ(read_file(folder / "new.jsonl"), "{\"step\":3}\n");
}

TEST(MetricsTest, ResumeCutsMarkedRecordsOfTheStepBeforeToo) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string kept = "{\"step\":1,\"phase\":\"test\"}\n{\"step\":2,\"phase\":\"train\"}\n";
  write_plain_file(path, kept + "{\"step\":2,\"phase\":\"test\"}\n{\"step\":2,\"phase\":\"late\"}\n");
  MetricsWriter::resume(path, 3, Metric{"phase", "test"});
  EXPECT_EQ(read_file(path), kept);
}

TEST(MetricsTest, ResumeRefusesAForeignFileAndLeavesIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string hint = "; hint: repair the file or move it away";
  for (const char* line : {"[1]", "{\"loss\":1}", "{\"step\":1.5}", "{\"step\":\"1\"}"}) {
    const std::string content = "{\"step\":1}\n" + std::string(line) + "\n{\"step\":9}\n";
    write_plain_file(path, content);
    EXPECT_EQ(error_text([&] { MetricsWriter::resume(path, 5); }),
              "[metrics] " + path +
                  ": line 2 is not a record of metrics: it is not an object with a whole number `step`" +
                  hint);
    EXPECT_EQ(read_file(path), content);
  }
  write_plain_file(path, "{\"step\"\n");
  EXPECT_EQ(error_text([&] { MetricsWriter::resume(path, 5); }),
            "[metrics] " + path + ": line 1 is not a record of metrics: it is not JSON" + hint);
}

TEST(MetricsTest, EveryCutOfAFileCanBeResumed) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string whole = "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.25}\n";
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_plain_file(path, whole.substr(0, length));
    MetricsWriter::resume(path, 3);
    const std::size_t line_feed = whole.substr(0, length).rfind('\n');
    EXPECT_EQ(read_file(path), whole.substr(0, line_feed == std::string::npos ? 0 : line_feed + 1));
  }
}

TEST(MetricsTest, AFullDiskLeavesWholeRecords) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string text = test::text_from_child([&]() -> std::string {
    const rlimit limit{1000, 1000};
    std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit could be set";
    MetricsWriter writer = MetricsWriter::create(path);
    for (int step = 0;; ++step) writer.write(step, {{"text", std::string(100, 'x')}});
  });
  EXPECT_EQ(text, "[file] " + path + ": cannot write: File too large");
  const std::string content = read_file(path);
  EXPECT_GT(content.size(), 800U);
  EXPECT_TRUE(content.ends_with("\"}\n"));
}

}  // namespace
}  // namespace purine::io
