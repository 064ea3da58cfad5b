#include "purine/trace/chrome_trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>

#include "purine/core/json_helpers.h"
#include "purine/core/version.h"
#include "purine/io/file.h"
#include "purine/trace/analysis.h"
#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::trace {
namespace {

using test::error_text;
using test::TemporaryFolder;
using test::write_plain_file;
using Json = nlohmann::json;

Trace small_trace() {
  Trace trace;
  trace.rank = 2;
  trace.operators = {{"net/conv", "conv2d", "2/cpu:0", "f32[2, 3] -> f32[2, 4]"},
                     {"net/a\"b", "relu", "2/cpu:0", "f32[2]"}};
  trace.operators[0].operations = 48;
  trace.operators[0].bytes = 64;
  trace.operators[0].after = {{1, 1, false}};
  trace.operators[0].outputs = {{64, 32, 2, 64}};
  trace.operators[1].brings_data = true;
  trace.tracks = {"worker 0", "worker 1"};
  trace.names = {"save", "bytes"};
  trace.events = {{0, 0, 1, 5, 1'000'000'001, 1'000'002'501}, {1, 3, 0, 6, 1'000'002'000, 1'000'002'000}};
  trace.spans = {{0, 0, 1'000'000'000, 1'000'000'999}};
  trace.counters = {{1, 1, 1'000'003'000, 0.5}};
  trace.dropped = 4;
  return trace;
}

/// Many events, each an operator of an iteration of its own.
Trace long_trace(int events) {
  Trace trace = small_trace();
  trace.events.clear();
  for (int i = 0; i < events; ++i)
    trace.events.push_back({0, 0, 0, i, 1'000'000'000 + 10 * i, 1'000'000'009 + 10 * i});
  return trace;
}

TEST(ChromeTraceTest, WritesTheTraceEventFormat) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_chrome_trace(folder / "trace.json", small_trace()), 0U);
  const std::string expected =
      R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":2,"name":"process_name","args":{"name":"rank 2"}},
{"ph":"M","pid":2,"tid":0,"name":"thread_name","args":{"name":"worker 0"}},
{"ph":"M","pid":2,"tid":1,"name":"thread_name","args":{"name":"worker 1"}},
{"ph":"X","pid":2,"tid":0,"ts":0.000,"dur":0.999,"name":"save","cat":"span"},
{"ph":"X","pid":2,"tid":1,"ts":0.001,"dur":2.500,"name":"net/conv","cat":"conv2d","args":{"iteration":5,"part":0,"op":0,"location":"2/cpu:0","shapes":"f32[2, 3] -> f32[2, 4]"}},
{"ph":"X","pid":2,"tid":0,"ts":2.000,"dur":0.000,"name":"net/a\"b","cat":"relu","args":{"iteration":6,"part":3,"op":1,"location":"2/cpu:0","shapes":"f32[2]"}},
{"ph":"C","pid":2,"tid":1,"ts":3.000,"name":"bytes","args":{"value":0.5}}
],"operators":[
{"path":"net/conv","type":"conv2d","location":"2/cpu:0","shapes":"f32[2, 3] -> f32[2, 4]","operations":48.0,"bytes":64.0,"after":[1,1,0],"outputs":[64,32,2,64]},
{"path":"net/a\"b","type":"relu","location":"2/cpu:0","shapes":"f32[2]","operations":0.0,"bytes":0.0,"brings_data":true}
],"otherData":{"purine":")" +
      std::string(version()) + R"(","origin_ns":1000000000,"dropped_events":4,"left_out_events":0}}
)";
  EXPECT_EQ(io::read_file(folder / "trace.json"), expected);
  EXPECT_TRUE(Json::accept(expected));
}

TEST(ChromeTraceTest, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  write_chrome_trace(folder / "a", small_trace());
  EXPECT_EQ(read_chrome_trace(folder / "a"), small_trace());

  Trace late = small_trace();  // by a clock that counts from 1970
  for (OperatorEvent& event : late.events) {
    event.begin += 1'760'000'000'000'000'000;
    event.end += 1'760'000'000'000'000'000;
  }
  late.spans.clear();
  late.counters.clear();
  late.names.clear();
  write_chrome_trace(folder / "b", late);
  EXPECT_EQ(read_chrome_trace(folder / "b"), late);

  Trace receiver = small_trace();  // of a rank among several
  receiver.operators[1].exchange = {false, 1, 7, 8};
  receiver.memory = {{"2/cpu:0", 100, 200}};
  receiver.clock = {-500, 20};
  receiver.about = {{"host", "node \"2\""}, {"cores", "2"}};
  receiver.run = {"[model]\nname = \"lenet\"\n", "name = \"two\"\n", {1, 28, 28}, 10};
  write_chrome_trace(folder / "d", receiver, {.origin = 999'999'000});
  EXPECT_EQ(read_chrome_trace(folder / "d"), receiver);
  const std::string text = io::read_file(folder / "d");
  EXPECT_NE(
      text.find(
          R"({"ph":"i","s":"t","pid":2,"tid":0,"ts":3.000,"name":"net/a\"b","cat":"relu",)"
          R"("args":{"iteration":6,"part":3,"op":1,"location":"2/cpu:0","shapes":"f32[2]","offered":3.000}})"),
      std::string::npos)
      << "a receive is a mark at its end";
  EXPECT_NE(text.find(R"("clock_offset_ns":-500,"clock_error_ns":20)"), std::string::npos);

  write_chrome_trace(folder / "c", Trace{});
  EXPECT_EQ(read_chrome_trace(folder / "c"), Trace{});
}

TEST(ChromeTraceTest, LeavesTheLatestEventsOutWhenTheFileWouldBeTooLarge) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const Trace trace = long_trace(5000);
  const std::uint64_t left_out = write_chrome_trace(path, trace, {.max_bytes = 100'000});
  EXPECT_LE(std::filesystem::file_size(path), 100'000U);
  EXPECT_GT(std::filesystem::file_size(path), 99'000U);
  const Trace read = read_chrome_trace(path);
  EXPECT_EQ(read.events.size() + read.spans.size() + read.counters.size() + left_out, 5002U);
  EXPECT_EQ(read.dropped, 4 + left_out);
  EXPECT_EQ(read.events.back().iteration, static_cast<std::int64_t>(read.events.size()) - 1);
  EXPECT_EQ(parse_json(io::read_file(path)).at("otherData").at("left_out_events"), left_out);
}

TEST(ChromeTraceTest, ATableThatIsTooLargeIsLeftOut) {
  const TemporaryFolder folder;
  Trace trace = long_trace(200);
  trace.operators.resize(1000, trace.operators.back());
  trace.operators[0].after.assign(5000, {1, 0, true});
  write_chrome_trace(folder / "trace.json", trace, {.max_bytes = 50'000});
  EXPECT_LE(std::filesystem::file_size(folder / "trace.json"), 50'000U);
  const Trace read = read_chrome_trace(folder / "trace.json");
  EXPECT_EQ(read.events.size(), 200U);
  ASSERT_EQ(read.operators.size(), 1U) << "those that events name";
  EXPECT_EQ(read.operators[0].path, "net/conv");
  EXPECT_TRUE(read.operators[0].after.empty());
}

TEST(ChromeTraceTest, IsValidWhateverIsInIt) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  trace.operators[0].path = "broken \xff text\n";
  trace.counters.push_back({1, 0, 1'000'003'001, std::numeric_limits<double>::quiet_NaN()});
  trace.counters.push_back({1, 0, 1'000'003'002, std::numeric_limits<double>::infinity()});
  trace.counters.push_back({1, 0, 1'000'003'003, 1e300});
  EXPECT_EQ(write_chrome_trace(folder / "trace.json", trace), 2U);
  const Trace read = read_chrome_trace(folder / "trace.json");
  EXPECT_EQ(read.operators[0].path, "broken \xef\xbf\xbd text\n");
  EXPECT_EQ(read.counters.size(), 2U);
  EXPECT_EQ(read.counters[1].value, 1e300);
}

TEST(ChromeTraceTest, AKillAtAnyMomentLeavesValidJson) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  write_chrome_trace(path, long_trace(1));
  std::minstd_rand random(4);
  std::size_t largest = 0;
  for (int round = 0; round < 20; ++round) {
    test::ChildProcess writer([&] {
      for (int i = 1;; ++i) write_chrome_trace(path, long_trace(i * 20 % 2000));
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 10'000));
    writer.kill();
    largest = std::max(largest, read_chrome_trace(path).events.size());
  }
  EXPECT_GT(largest, 1U);
}

TEST(ChromeTraceTest, SaysWhatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const auto error_for = [&](const std::string& content) {
    write_plain_file(path, content);
    const std::string text = error_text([&] { read_chrome_trace(path); });
    const std::string start = "[trace] " + path + ": ";
    EXPECT_EQ(text.find(start), 0U) << text;
    return text.substr(std::min(start.size(), text.size()));
  };
  const auto with_event = [](const std::string& event) {
    return "{\"traceEvents\":[" + event +
           "],\"otherData\":{\"origin_ns\":0,\"dropped_events\":0,\"left_out_events\":0}}";
  };
  const std::string start = R"({"ph":"X","pid":0,"tid":0,"ts":1,"dur":1,"name":"a","cat":"b",)";
  EXPECT_EQ(error_for("[]"), "is JSON, but not a trace of purine");
  EXPECT_EQ(error_for("{\"traceEvents\":[]}"), "is JSON, but not a trace of purine");
  const std::string hint =
      "; hint: name a trace, as a job with trace.steps above 0 leaves and purine bench --trace writes";
  EXPECT_EQ(error_for(""), "is empty, and so is not JSON" + hint);
  EXPECT_EQ(error_for("{\"traceEvents\":[\nno trace"), "is not JSON (line 2, column 2)" + hint);
  EXPECT_EQ(error_for(with_event(R"({"ph":"B","pid":0,"tid":0,"ts":1,"name":"a"})")),
            "has an event of the kind `B`, which purine doesn't write");
  EXPECT_EQ(error_for(with_event(R"({"ph":"C","pid":0,"tid":0,"ts":1e300,"name":"a","args":{"value":1}})")),
            "has a time that is out of range");
  EXPECT_EQ(error_for(with_event(R"({"ph":"X","pid":0,"tid":0,"ts":1,"dur":-1,"name":"a","cat":"span"})")),
            "has a duration that is out of range");
  EXPECT_EQ(error_for(with_event(R"({"ph":"C","pid":0,"tid":65536,"ts":1,"name":"a","args":{"value":1}})")),
            "has a track that is out of range: 65536");
  EXPECT_EQ(error_for(with_event(start + R"("args":{"iteration":1,"part":1.5,"location":"","shapes":""}})")),
            "has a number that is out of range: 1.5");
  EXPECT_EQ(error_for(with_event(
                start + R"("args":{"iteration":18446744073709551615,"part":0,"location":"","shapes":""}})")),
            "has a number that is out of range: 18446744073709551615");
  EXPECT_EQ(error_for(with_event(
                R"({"ph":"M","pid":0,"name":"process_name"},{"ph":"M","pid":1,"name":"process_name"})")),
            "holds the events of more than one process");
  EXPECT_EQ(error_for(with_event(start + "\"args\":{}}")), "cannot be read: key 'location' not found" + hint);
  EXPECT_EQ(error_for(with_event(start + R"("args":{"iteration":1,"part":0,"op":3}})")),
            "names operator 3, and its table has 0");
}

TEST(ChromeTraceTest, EveryCutIsRefusedAndNoChangedByteDoesHarm) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  write_chrome_trace(path, small_trace());
  const std::string whole = io::read_file(path);
  for (std::size_t length = 0; length + 1 < whole.size();
       ++length) {  // without the last line feed it is whole
    write_plain_file(path, whole.substr(0, length));
    EXPECT_NE(error_text([&] { read_chrome_trace(path); }).find(path), std::string::npos) << length;
  }
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0x04, 0x10, 0x80}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      write_plain_file(path, changed);
      try {
        const Trace trace = read_chrome_trace(path);
        EXPECT_FALSE(report(trace).empty());  // what is read can be used
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.path(), path);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace purine::trace
