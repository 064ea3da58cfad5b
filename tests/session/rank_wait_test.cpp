// Who is told of a rank that is waited for, and of what is missing.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/net/in_process_endpoint.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/reduce.h"
#include "purine/parallel/partition.h"
#include "purine/session/arrivals.h"
#include "purine/session/session.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::at_ranks;

TEST(ArrivalsTest, TheFirstThatIsMissingIsOfTheEarliestIteration) {
  Arrivals arrivals(4);
  EXPECT_FALSE(arrivals.first_missing());
  arrivals.begin(1);
  arrivals.begin(3);
  EXPECT_EQ(arrivals.first_missing()->op, 1u);
  arrivals.end(1);
  arrivals.begin(1);
  EXPECT_EQ(arrivals.first_missing()->op, 3u) << "an operator that comes later, of an earlier iteration";
  arrivals.end(3);
  EXPECT_EQ(arrivals.first_missing()->op, 1u);
  EXPECT_EQ(arrivals.first_missing()->iteration, 1);
  arrivals.end(1);
  EXPECT_FALSE(arrivals.first_missing());
}

/// mean(w * x) over x = 1, 2, 3 at rank 0 and 10 at rank 1, and its gradient by w.
struct WeightedMean {
  Graph whole;
  Tensor x;
  Tensor loss;
  Tensor gradient;
  parallel::Partitioned parts;

  WeightedMean() : parts(divide()) {}

  parallel::Partitioned divide() {
    x = whole.input("x", {{4}, DType::f32});
    const Variable w = whole.variable("w", {{}, DType::f32}, ops::make_constant({{}, DType::f32}, 1));
    loss = ops::mean(ops::multiply(x, w));
    gradient = gradients(loss, {w})[0];
    whole.watch(loss);
    whole.watch(gradient);
    parallel::Mesh mesh({{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}});
    mesh.set_shares("data", {3, 1});
    parallel::Specs specs(mesh);
    specs.split_samples(whole, "data");
    return parallel::partition(whole, specs);
  }
  void feed(Session& session, std::chrono::milliseconds delay = {}) {
    session.feed(parts.at(x), [delay](std::int64_t iteration, std::span<std::byte> value) {
      if (iteration == 3) std::this_thread::sleep_for(delay);
      const float values[] = {1, 2, 3, 10};
      std::copy_n(reinterpret_cast<const std::byte*>(values), value.size(), value.begin());
    });
  }
};

TEST(RankWeightsTest, AMeanOverUnequalSharesWeighsBySamples) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [](Endpoint& endpoint) {
    WeightedMean mean;
    Runtime runtime({.workers = 1, .endpoint = &endpoint});
    Session session(runtime, mean.parts.graph());
    mean.feed(session);
    for (const Step& step : session.run({.steps = 2})) {
      if (endpoint.rank() != 0) continue;
      EXPECT_EQ(step.value(mean.parts.at(mean.loss)), 4);
      EXPECT_EQ(step.value(mean.parts.at(mean.gradient)), 4);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// What rank 1 of two was told that it waits for, from a tenth of a second on.
template <typename Run>
std::vector<RankWait> waits_of_rank_1(const Run& run) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  std::vector<RankWait> waits;
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    WeightedMean mean;
    Runtime runtime({.workers = 1, .endpoint = &endpoint});
    SessionOptions options;
    options.notice_after = std::chrono::milliseconds(100);
    if (endpoint.rank() == 1) options.waits = [&](const RankWait& wait) { waits.push_back(wait); };
    Session session(runtime, mean.parts.graph(), options);
    run(session, mean, endpoint.rank());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return waits;
}

TEST(RankWaitTest, TheRankThatIsWaitedForAndWhatIsMissingAreTold) {
  const std::vector<RankWait> waits = waits_of_rank_1([](Session& session, WeightedMean& mean, int) {
    mean.feed(session, std::chrono::milliseconds(1500));  // the input is fed at rank 0
    session.run_steps(5);
  });
  ASSERT_FALSE(waits.empty());
  EXPECT_LE(waits.size(), 4u) << "each time after twice the time";
  EXPECT_EQ(waits[0].rank, 0);
  EXPECT_EQ(waits[0].iteration, 3);
  EXPECT_GE(waits[0].seconds, 0.1);
  EXPECT_NE(waits[0].tensor.find("x"), std::string::npos) << waits[0].tensor;
}

TEST(RankWaitTest, TheRankThatHasNotSaidWhereTheRunEndsIsTold) {
  const std::vector<RankWait> waits = waits_of_rank_1([](Session& session, WeightedMean& mean, int rank) {
    mean.feed(session);
    // Rank 0's loop is held up in its first step, while all that was admitted is computed.
    for (const Step& step : session.run({.steps = 5})) {
      if (rank == 0 && step.index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      if (rank == 1 && step.index == 1) break;
    }
  });
  ASSERT_FALSE(waits.empty());
  EXPECT_EQ(waits[0].rank, 0);
  EXPECT_GE(waits[0].seconds, 0.1);
}

}  // namespace
}  // namespace purine
