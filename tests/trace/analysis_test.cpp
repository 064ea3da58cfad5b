#include "purine/trace/analysis.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace purine::trace {
namespace {

/// Two iterations on two workers; time goes to the right, ten to a step:
///
///     worker 0   conv, 0      conv, 1 part 0   relu, 1
///                0……40        60……90           90……100
///     worker 1         copy,0  conv, 1 part 1           relu, 0
///                      20……50  70……85                   95……120
Trace two_iterations() {
  Trace trace;
  trace.operators = {{"net/block/conv", "conv2d", "0/cpu:0", ""},
                     {"net/block/relu", "relu", "0/cpu:0", ""},
                     {"net/copy", "copy", "0/cpu:0", ""}};
  trace.tracks = {"worker 0", "worker 1", "worker 2"};
  trace.events = {{0, 0, 0, 0, 0, 40},  {2, 0, 1, 0, 20, 50},  {0, 0, 0, 1, 60, 90},
                  {0, 1, 1, 1, 70, 85}, {1, 0, 0, 1, 90, 100}, {1, 0, 1, 0, 95, 120}};
  return trace;
}

TEST(AnalysisTest, TotalsByType) {
  const std::vector<TypeTotal> totals = totals_by_type(two_iterations());
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].type, "conv2d");
  EXPECT_EQ(totals[0].executions, 2U);
  EXPECT_EQ(totals[0].events, 3U);
  EXPECT_EQ(totals[0].time, 40 + 30 + 15);
  EXPECT_DOUBLE_EQ(totals[0].share, 85.0 / 150.0);
  EXPECT_EQ(totals[1].type, "relu");
  EXPECT_EQ(totals[1].time, 35);
  EXPECT_EQ(totals[2].type, "copy");
  EXPECT_EQ(totals[2].executions, 1U);
}

TEST(AnalysisTest, UseOfTheTracks) {
  const std::vector<TrackUsage> usage = track_usage(two_iterations());
  ASSERT_EQ(usage.size(), 3U);
  EXPECT_EQ(usage[0].name, "worker 0");
  EXPECT_EQ(usage[0].busy, 80);
  EXPECT_EQ(usage[0].waiting, 40);
  EXPECT_DOUBLE_EQ(usage[0].busy_share, 80.0 / 120.0);
  EXPECT_EQ(usage[1].busy, 70);
  EXPECT_EQ(usage[2].busy, 0);
  EXPECT_EQ(usage[2].waiting, 120);
}

TEST(AnalysisTest, ATrackIsBusyOnceWhereItsEventsLieInEachOther) {
  Trace trace = two_iterations();
  trace.events = {{0, 0, 0, 0, 0, 40}, {1, 0, 0, 0, 10, 20}, {2, 0, 0, 0, 30, 50}};
  EXPECT_EQ(track_usage(trace)[0].busy, 50);
}

TEST(AnalysisTest, UseOfTheTime) {
  const TimeUsage usage = time_usage(two_iterations());
  EXPECT_EQ(usage.total, 120);
  EXPECT_EQ(usage.waiting, 10);  // 50 to 60
  EXPECT_DOUBLE_EQ(usage.parallelism, 150.0 / 110.0);
}

TEST(AnalysisTest, ExposedTime) {
  const Trace trace = two_iterations();
  EXPECT_EQ(exposed_time(trace, of_type("copy")), 10);           // 40 to 50
  EXPECT_EQ(exposed_time(trace, of_type("conv2d")), 20 + 30);    // 0 to 20, 60 to 90
  EXPECT_EQ(exposed_time(trace, within("net/block")), 20 + 60);  // all but 20 to 60
  EXPECT_EQ(exposed_time(trace, within("")), 110);
}

TEST(AnalysisTest, SelectorsTakeScopesByWholeNames) {
  const auto label = [](std::string path) { return OperatorLabel{std::move(path), "relu", "", ""}; };
  EXPECT_TRUE(within("net/a")(label("net/a")));
  EXPECT_TRUE(within("net/a")(label("net/a/b")));
  EXPECT_FALSE(within("net/a")(label("net/a_2")));
  EXPECT_FALSE(within("net/a")(label("net")));
  EXPECT_TRUE(within("")(label("net")));
  EXPECT_TRUE(of_type("relu")(label("net")));
  EXPECT_FALSE(of_type("copy")(label("net")));
}

TEST(AnalysisTest, WhatRanAtTheSameTime) {
  const Trace trace = two_iterations();
  EXPECT_TRUE(ran_at_the_same_time(trace, within("net/block/conv"), within("net/copy")));
  EXPECT_TRUE(ran_at_the_same_time(trace, within("net/copy"), within("net/block/conv")));
  EXPECT_FALSE(ran_at_the_same_time(trace, within("net/copy"), within("net/block/relu")));
  EXPECT_FALSE(
      ran_at_the_same_time(trace, within("net/block/conv"), within("net/block/conv")));  // parts of one

  const std::vector<Overlap> found = overlaps(trace, within(""), within(""));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].first, 0U);
  EXPECT_EQ(found[0].second, 1U);
  EXPECT_EQ(found[0].time, 20);
  EXPECT_EQ(found[1].first, 4U);  // relu with itself, an iteration later
  EXPECT_EQ(found[1].second, 5U);
  EXPECT_EQ(found[1].time, 5);
}

TEST(AnalysisTest, TouchingIsNotOverlapping) {
  Trace trace = two_iterations();
  trace.events = {{0, 0, 0, 0, 0, 40}, {1, 0, 1, 0, 40, 50}, {2, 0, 2, 0, 45, 45}};
  EXPECT_TRUE(overlaps(trace, within(""), within("")).empty());
}

TEST(AnalysisTest, WhereIterationsMeet) {
  const std::vector<IterationOverlap> found = iteration_overlaps(two_iterations());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].iteration, 0);
  EXPECT_EQ(found[0].last_operator, 1U);
  EXPECT_EQ(found[0].next_operator, 0U);
  EXPECT_EQ(found[0].time, 120 - 60);

  Trace serial = two_iterations();
  serial.events = {{0, 0, 0, 0, 0, 40}, {1, 0, 0, 1, 50, 60}, {1, 0, 0, 3, 70, 80}};
  ASSERT_EQ(iteration_overlaps(serial).size(), 1U);
  EXPECT_EQ(iteration_overlaps(serial)[0].time, -10);
}

TEST(AnalysisTest, Report) {
  Trace trace = two_iterations();
  trace.dropped = 3;
  for (OperatorEvent& event : trace.events) {
    event.begin *= 100'000;
    event.end *= 100'000;
  }
  EXPECT_EQ(report(trace),
            R"(6 events of operators in 12.000 ms; nothing ran for 1.000 ms; 1.36 at the same time on average
3 further events found no room and are missing here

type                             executions     events           ms   share
conv2d                                    2          3        8.500   56.7%
relu                                      2          2        3.500   23.3%
copy                                      1          1        3.000   20.0%

track                                 busy ms   waiting ms    busy
worker 0                                8.000        4.000   66.7%
worker 1                                7.000        5.000   58.3%
worker 2                                0.000       12.000    0.0%

1 of 1 iterations overlap the next one
most: net/block/conv of iteration 1 began 6.000 ms before net/block/relu of iteration 0 ended
)");
  EXPECT_EQ(report(Trace{}), "The trace holds no operator.\n");
}

TEST(AnalysisTest, AnEmptyTraceHasNothing) {
  const Trace trace;
  EXPECT_TRUE(totals_by_type(trace).empty());
  EXPECT_TRUE(track_usage(trace).empty());
  EXPECT_EQ(time_usage(trace).total, 0);
  EXPECT_EQ(exposed_time(trace, within("")), 0);
  EXPECT_TRUE(iteration_overlaps(trace).empty());
}

}  // namespace
}  // namespace purine::trace
