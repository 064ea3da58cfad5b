#include "purine/sim/cost_table.h"

#include <gtest/gtest.h>

#include "purine/trace/trace.h"

namespace purine::sim {
namespace {

// Two operators of the same shapes, in two iterations: 10 and 20, 10 and 40 ns, one of them in two parts.
TEST(CostTableTest, ATraceGivesTheMeanOfAllExecutions) {
  trace::Trace trace;
  for (const char* path : {"a", "b"}) trace.operators.push_back({path, "relu", "0/cpu:0", "f32[4]"});
  trace.events = {{0, 0, 0, 0, 0, 10},  {1, 0, 0, 0, 10, 15}, {1, 1, 0, 0, 20, 35},
                  {0, 0, 0, 1, 40, 50}, {1, 0, 0, 1, 50, 60}, {1, 1, 0, 1, 60, 90}};
  const CostTable costs = CostTable::from_trace(trace);
  const MeasuredCost* const cost = costs.find("relu", "f32[4]");
  ASSERT_NE(cost, nullptr);
  EXPECT_DOUBLE_EQ(cost->seconds, 20e-9);
  EXPECT_EQ(cost->parts, 2);
  EXPECT_EQ(costs.size(), 1U);
  // In turn those of the first and the second iteration, of `a` and of `b`.
  for (const std::int64_t iteration : {0, 2}) {
    EXPECT_DOUBLE_EQ(cost->seconds_at(iteration, 0), 10e-9);
    EXPECT_DOUBLE_EQ(cost->seconds_at(iteration, 1), 20e-9);
    EXPECT_DOUBLE_EQ(cost->seconds_at(iteration + 1, 0), 10e-9);
    EXPECT_DOUBLE_EQ(cost->seconds_at(iteration + 1, 1), 40e-9);
  }
}

TEST(CostTableTest, WhatTheMemoryLimitsIsLikeOthersThatItLimits) {
  const Processor processor{.f32_operations = 1e9, .memory_bytes_per_second = 1e9};
  CostTable costs;
  costs.set("update", "large", {.seconds = 2e-3, .cost = {.operations = 1, .bytes = 1e6}});
  costs.set("update", "small", {.seconds = 1e-6, .cost = {.operations = 1, .bytes = 1e3}});
  costs.set("matmul", "large", {.seconds = 5e-3, .cost = {.operations = 1e9, .bytes = 2e6}});
  EXPECT_EQ(costs.most_alike({0, 2e6}, DType::f32, processor), costs.find("update", "large"));
  EXPECT_EQ(costs.most_alike({0, 2e3}, DType::f32, processor), costs.find("update", "small"));
  EXPECT_EQ(costs.most_alike({1e9, 2e6}, DType::f32, processor), nullptr);
  EXPECT_EQ(costs.most_alike("matmul", {1e6, 1e3}, DType::f32, processor), costs.find("matmul", "large"));
  EXPECT_EQ(costs.most_alike("copy", {0, 2e6}, DType::f32, processor), nullptr);
}

TEST(CostTableTest, WhereOnlyOneNumberIsKnownItCounts) {
  EXPECT_EQ((MeasuredCost{.seconds = 3e-6, .parts = 2}).seconds_at(7, 5), 3e-6);
}

}  // namespace
}  // namespace purine::sim
