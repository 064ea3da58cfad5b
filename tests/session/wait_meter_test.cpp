#include "purine/session/wait_meter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "purine/session/session.h"
#include "tests/support/mix_operator.h"

namespace purine {
namespace {

constexpr bool brings_data = true;
constexpr bool computes = false;

/// A meter whose clock stands until it is told.
struct Metered {
  std::int64_t time = 1'000'000;
  WaitMeter meter{[this] { return time; }};

  Metered() { meter.reset(); }
  /// An operator that runs for so long, alone.
  void run(bool is_source, std::int64_t duration) {
    const WaitMeter::Scope running(meter, is_source);
    time += duration;
  }
};

TEST(WaitMeterTest, CountsTheTimeInWhichDataAloneIsBroughtIn) {
  Metered metered;
  for (int i = 0; i < 5; ++i) {
    metered.run(brings_data, 30);
    metered.run(computes, 10);
  }
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.75);
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0) << "no time has gone by";
  for (int i = 0; i < 5; ++i) {
    metered.run(brings_data, 1);
    metered.run(computes, 99);
  }
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.01);
}

TEST(WaitMeterTest, DataThatComesWhileOthersComputeIsNotWaitedFor) {
  Metered metered;
  {
    const WaitMeter::Scope computing(metered.meter, computes);
    metered.run(brings_data, 50);
    metered.time += 50;
  }
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0);
  // The rest of a source's time, after computing has ended, is.
  {
    const WaitMeter::Scope source(metered.meter, brings_data);
    metered.run(computes, 60);
    metered.time += 40;
  }
  metered.run(computes, 100);
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.2);
}

TEST(WaitMeterTest, PausesWithoutASourceAreNoWaitForData) {
  Metered metered;
  metered.run(computes, 10);
  metered.time += 80;
  metered.run(computes, 10);
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0);
}

TEST(WaitMeterTest, AWaitThatGoesOnIsDividedBetweenTheCalls) {
  Metered metered;
  metered.run(computes, 60);
  std::optional<WaitMeter::Scope> source(std::in_place, metered.meter, brings_data);
  metered.time += 40;
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.4);
  metered.time += 100;
  EXPECT_DOUBLE_EQ(metered.meter.share(), 1);
  metered.time += 10;
  source.reset();
  metered.run(computes, 30);
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.25);
}

TEST(WaitMeterTest, BeginsAnewWithTheFirstWait) {
  Metered metered;
  metered.run(brings_data, 30);
  metered.run(computes, 10);
  metered.time += 1000;
  metered.meter.reset();
  metered.run(brings_data, 25);
  metered.run(computes, 75);
  EXPECT_DOUBLE_EQ(metered.meter.share(), 0.25);
}

TEST(WaitMeterTest, SaysForHowLongNothingHasRun) {
  Metered metered;
  metered.run(computes, 10);
  metered.time += 2'500'000'000;
  EXPECT_DOUBLE_EQ(metered.meter.idle_seconds(), 2.5);
  const WaitMeter::Scope source(metered.meter, brings_data);
  EXPECT_DOUBLE_EQ(metered.meter.idle_seconds(), 0);
}

/// The share of waiting of a session whose source and computation sleep for so long.
double wait_share(int source_microseconds, int compute_microseconds) {
  Runtime runtime({.workers = 2});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor data =
      test::mix(graph, {}, {.salt = 1, .brings_samples = true, .microseconds = source_microseconds}).output();
  graph.watch(test::mix(graph, {data}, {.salt = 2, .microseconds = compute_microseconds}).output());
  Session session(runtime, graph);
  session.run_steps(10);
  return session.data_wait_share();
}

TEST(DataWaitShareTest, IsHigherWithASlowSourceThanWithAFastOne) {
  const double slow = wait_share(8000, 0);
  const double fast = wait_share(0, 8000);
  EXPECT_GT(slow, fast);
  EXPECT_LE(slow, 1);
  EXPECT_GE(fast, 0);
}

}  // namespace
}  // namespace purine
