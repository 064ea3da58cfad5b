#include "purine/trace/html_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/trace/memory_use.h"
#include "purine/trace/report_data.h"
#include "purine/trace/report_lanes.h"

namespace purine::trace {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<std::int64_t>;

/// a makes 100 bytes that b and c read; c's 60 lie in the last part of them, which it overwrites; b's 40
/// behind.
Trace three_operators() {
  Trace trace;
  trace.tracks = {"worker 0", "worker 1"};
  trace.memory = {{"0/cpu:0", 1000, 160}};
  for (const std::string name : {"a", "b", "c"}) {
    trace.operators.push_back({"net/" + name, "linear", "0/cpu:0", "f32[25] -> f32[25]"});
  }
  trace.operators[0].outputs = {{0, 100, 1, 0}};
  trace.operators[1].after = {{0, 0, true}};
  trace.operators[1].outputs = {{100, 40, 1, 0}};
  trace.operators[2].after = {{0, 0, true}, {1, 0, true}};
  trace.operators[2].outputs = {{40, 60, 1, 0}};
  trace.events = {{0, 0, 0, 0, 0, 10}, {1, 0, 1, 0, 12, 20}, {2, 0, 0, 0, 25, 40}};
  return trace;
}

TEST(MemoryUseTest, CountsEachByteOnceWhileAnyTensorNeedsIt) {
  const std::vector<Trace> ranks = {three_operators()};
  const std::vector<MemoryCurve> curves = memory_over_time(Timeline(ranks), 0);
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_EQ(curves[0].planned.location, "0/cpu:0");
  EXPECT_EQ(curves[0].times, (Numbers{0, 12, 25, 40}));
  EXPECT_EQ(curves[0].bytes, (Numbers{100, 140, 140, 0})) << "c lies within what a made";
}

TEST(MemoryUseTest, IterationsLieInSlotsInTurn) {
  Trace trace = three_operators();
  trace.operators.resize(1);
  trace.operators[0].outputs = {{0, 50, 2, 64}};
  trace.events = {{0, 0, 0, 0, 0, 10}, {0, 0, 1, 1, 5, 15}};
  const std::vector<Trace> ranks = {trace};
  EXPECT_EQ(memory_over_time(Timeline(ranks), 0)[0].bytes, (Numbers{50, 100, 50, 0}));
}

TEST(MemoryUseTest, AThinnedCurveKeepsItsPeaks) {
  MemoryCurve curve;
  for (std::int64_t i = 0; i < 10'000; ++i) {
    curve.times.push_back(i);
    curve.bytes.push_back(i == 7777 ? 500 : 10 + i % 3);
  }
  const MemoryCurve thin = thinned(curve, 100);
  EXPECT_LE(thin.times.size(), 100U);
  EXPECT_NE(std::ranges::find(thin.bytes, 500), thin.bytes.end());
  EXPECT_TRUE(std::ranges::is_sorted(thin.times));
  EXPECT_EQ(thinned(thin, 1000).times, thin.times);
}

TEST(ReportLanesTest, MessagesAtTheSameTimeLieInRowsOfTheirLink) {
  Trace trace;
  trace.tracks = {"worker 0", "receives", "sends 0"};
  trace.operators = {
      {"a", "linear", "0/cpu:0", ""}, {"b", "receive", "0/cpu:0", ""}, {"c", "receive", "0/cpu:0", ""}};
  trace.operators[1].exchange = {false, 3, 1, 8};
  trace.operators[2].exchange = {false, 3, 2, 8};
  trace.events = {{0, 0, 0, 0, 0, 10},
                  {1, 0, 1, 0, 2, 20},
                  {2, 0, 1, 0, 5, 30},
                  {1, 0, 1, 1, 21, 40},
                  {2, 0, 1, 1, 35, 60}};
  const std::vector<Trace> ranks = {trace};
  const LanesOfRank placed = lanes_of(Timeline(ranks), 0);
  ASSERT_EQ(placed.lanes.size(), 2U);
  EXPECT_EQ(placed.lanes[0].name, "worker 0");
  EXPECT_EQ(placed.lanes[1].name, "from rank 3");
  EXPECT_EQ(placed.lanes[1].rows, 2);
  std::vector<int> rows;
  for (const Placed& each : placed.events) rows.push_back(each.row);
  EXPECT_EQ(rows, (std::vector<int>{0, 0, 1, 0, 1}));
  const LanesOfRank narrow = lanes_of(Timeline(ranks), 0, 1);
  EXPECT_EQ(narrow.lanes[1].rows, 1);
  for (std::size_t i = 2; i < narrow.events.size(); ++i) {
    EXPECT_GE(narrow.events[i].start, narrow.events[i - 1].end) << "the events of a row don't overlap";
  }
}

TEST(HtmlReportTest, TheDataIsWhole) {
  const std::vector<Trace> ranks = {three_operators()};
  const Json data =
      parse_json(report_data(ranks, {"a title", "[model]\n",
                                     "{\"step\":10,\"phase\":\"test\",\"accuracy\":0.915}\nno json\n[1]\n"}));
  EXPECT_EQ(data.at("title"), "a title");
  EXPECT_EQ(data.at("job"), "[model]\n");
  EXPECT_EQ(data.at("metrics").size(), 1U) << "what can't be read is left out";
  EXPECT_EQ(data.at("tiles").back(), (Json{"test accuracy", "91.50%"}));
  const Json& packed = data.at("ranks").at(0).at("packed");
  EXPECT_EQ(packed.at("start"), (Json{0, 12, 13}));
  EXPECT_EQ(packed.at("length"), (Json{10, 8, 15}));
  EXPECT_EQ(packed.at("lane"), (Json{0, 1, 0}));
  EXPECT_EQ(data.at("edges"), parse_json("[[0,1,0],[0,2,0],[1,2,0]]"));
  EXPECT_EQ(data.at("path").size(), 5U) << "three operators, and what lies between";
  EXPECT_EQ(data.at("path").at(4).at("event"), 2);
  EXPECT_EQ(data.at("memory").at(0).at("arena"), 160);
}

TEST(HtmlReportTest, IsOnePageThatNoTextBreaks) {
  std::vector<Trace> ranks = {three_operators()};
  ranks[0].operators[0].path = "net/</script><b>";
  const std::string page = html_report(ranks, {"<i>", "", ""});
  EXPECT_EQ(page.find("<!doctype html>"), 0U);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_EQ(page.find("/*DATA*/"), std::string::npos);
  EXPECT_EQ(page.find("/*STYLE*/"), std::string::npos);
  EXPECT_EQ(page.find("/*SCRIPTS*/"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos) << "nothing is fetched";
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

TEST(HtmlReportTest, AnEmptyTraceHasAPageToo) {
  const std::vector<Trace> ranks(1);
  EXPECT_EQ(parse_json(report_data(ranks, {})).at("why").at("steps"), 0);
}

}  // namespace
}  // namespace purine::trace
