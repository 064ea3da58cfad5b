#include "purine/ops/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "purine/ops/iteration.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using ops::learning_rate_at;
using ops::ScheduleOptions;
using Kind = ScheduleOptions::Kind;
using test::error_text;

TEST(ScheduleTest, ConstantStays) {
  for (const std::int64_t t : {0, 1, 1000000}) EXPECT_EQ(learning_rate_at({.base = 0.3}, t), 0.3);
}

TEST(ScheduleTest, WarmUpRisesToTheBase) {
  const ScheduleOptions options{.base = 0.4, .warm_up = 4};
  for (int t = 0; t < 4; ++t) EXPECT_DOUBLE_EQ(learning_rate_at(options, t), 0.1 * (t + 1));
  EXPECT_EQ(learning_rate_at(options, 4), 0.4);
}

TEST(ScheduleTest, StepReducesAfterEachStep) {
  const ScheduleOptions options{.kind = Kind::step, .base = 1, .warm_up = 2, .step = 3, .factor = 0.5};
  const double expected[] = {0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (int t = 0; t < 9; ++t) EXPECT_DOUBLE_EQ(learning_rate_at(options, t), expected[t]) << t;
}

TEST(ScheduleTest, PolynomialFallsToTheLast) {
  const ScheduleOptions options{.kind = Kind::polynomial, .base = 1, .length = 4, .power = 2, .last = 0.2};
  for (int t = 0; t < 7; ++t) {
    const double left = std::max(0.0, 1 - t / 4.0);
    EXPECT_DOUBLE_EQ(learning_rate_at(options, t), 0.2 + 0.8 * left * left) << t;
  }
}

TEST(ScheduleTest, CosineFallsToTheLast) {
  const ScheduleOptions options{.kind = Kind::cosine, .base = 1, .warm_up = 2, .length = 6, .last = 0.1};
  for (int t = 0; t < 9; ++t) {
    EXPECT_DOUBLE_EQ(learning_rate_at(options, t + 2),
                     0.1 + 0.45 * (1 + std::cos(std::numbers::pi * std::min(t, 6) / 6)))
        << t;
  }
  EXPECT_NEAR(learning_rate_at(options, 100), 0.1, 1e-15);
}

TEST(ScheduleTest, IsAnOperatorOfTheIteration) {
  Graph graph;
  const Tensor iteration = ops::iteration(graph);
  const Tensor rate = ops::learning_rate(iteration, {.base = 0.5, .warm_up = 5});
  test::Evaluator evaluator(graph);
  for (int t = 0; t < 7; ++t) {
    const auto values = evaluator.step({iteration, rate});
    EXPECT_EQ(values[0].at(0), t);
    EXPECT_FLOAT_EQ(static_cast<float>(values[1].at(0)), std::min(0.1F * static_cast<float>(t + 1), 0.5F));
  }
}

TEST(ScheduleTest, RefusesWhatIsOutOfRange) {
  const auto text = [](ScheduleOptions options) {
    return error_text([&] { ops::LearningRate made(options); });
  };
  EXPECT_EQ(text({.base = -1}), "[learning_rate] base is -1, it must be finite and at least 0");
  EXPECT_EQ(text({.warm_up = -1}), "[learning_rate] warm_up is -1, it must be at least 0");
  EXPECT_EQ(text({.step = 0}), "[learning_rate] step is 0, it must be at least 1");
  EXPECT_EQ(text({.length = 0}), "[learning_rate] length is 0, it must be at least 1");
  EXPECT_EQ(text({.power = 0}), "[learning_rate] power is 0, it must be finite and above 0");
}

}  // namespace
}  // namespace purine
