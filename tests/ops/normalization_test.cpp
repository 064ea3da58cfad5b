#include "purine/ops/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/inference.h"
#include "tests/support/run_operator.h"

namespace purine::ops {
namespace {

using test::Array;
using test::error_text;
using test::f32;
using test::inference_error;

TEST(LocalResponseNormalizationTest, SumsOverTheNeighbouringChannels) {
  // Each of 5 channels is 1: the neighbourhood has 3, 4, 5, 4 and 3 members.
  const auto contract = std::make_shared<LocalResponseNormalization>(
      LocalResponseNormalizationOptions{.size = 5, .alpha = 10, .beta = 0.75, .k = 2});
  const Array x({{1, 5}, DType::f64}, {1, 1, 1, 1, 1});
  const Array y = test::run_operator(contract, {x})[0];
  const double neighbours[] = {3, 4, 5, 4, 3};
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(y.at(i), std::pow(2 + 10.0 / 5 * neighbours[i], -0.75), 1e-14);
  }
}

TEST(LocalResponseNormalizationTest, AnEvenNeighbourhoodReachesFurtherDown) {
  const auto contract = std::make_shared<LocalResponseNormalization>(
      LocalResponseNormalizationOptions{.size = 2, .alpha = 2, .beta = 1, .k = 1});
  const Array x({{1, 3}, DType::f64}, {1, 2, 3});
  const Array y = test::run_operator(contract, {x})[0];
  EXPECT_NEAR(y.at(0), 1.0 / 2, 1e-14);
  EXPECT_NEAR(y.at(1), 2.0 / 6, 1e-14);
  EXPECT_NEAR(y.at(2), 3.0 / 14, 1e-14);
}

TEST(LocalResponseNormalizationTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(inference_error(LocalResponseNormalization(LocalResponseNormalizationOptions{}), {f32({8})}),
            "[local_response_normalization] x is f32[8], rank 2 or more is needed; hint: x is [N, C, ...]");
  EXPECT_EQ(inference_error(LocalResponseNormalization({.size = 0}), {f32({8, 3})}),
            "[local_response_normalization] the size is 0, at least 1 is needed");
  EXPECT_EQ(inference_error(LocalResponseNormalization({.k = 0}), {f32({8, 3})}),
            "[local_response_normalization] k is 0 and alpha 0.0001; k must be above 0 and alpha not below: "
            "what is "
            "raised to a power must be positive");
}

TEST(BatchNormalizationTest, GivesEveryChannelMeanShiftAndDeviationScale) {
  const auto contract = std::make_shared<BatchNormalizationTraining>(BatchNormalizationOptions{0});
  const Array x({{2, 2, 1, 2}, DType::f64}, {1, 3, 10, 20, 5, 7, 30, 40});
  const Array scale({{2}, DType::f64}, {1, 2});
  const Array shift({{2}, DType::f64}, {0, 100});
  const std::vector<Array> results = test::run_operator(contract, {x, scale, shift});
  EXPECT_EQ(results[1].values(), (std::vector<double>{4, 25}));
  EXPECT_EQ(results[2].values(), (std::vector<double>{5, 125}));
  const double deviation = std::sqrt(5);
  EXPECT_NEAR(results[0].at(0), -3 / deviation, 1e-14);
  EXPECT_NEAR(results[0].at(7), 100 + 2 * 15 / std::sqrt(125), 1e-13);
}

TEST(BatchNormalizationTest, VarianceSurvivesALargeMean) {
  const auto contract = std::make_shared<BatchNormalizationTraining>(BatchNormalizationOptions{});
  Array x(f32({64, 1, 32, 32}));
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, 4096 + static_cast<double>(i % 3));
  const Array one(f32({1}), {1});
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    const std::vector<Array> results = test::run_operator(contract, {x, one, one}, {.layout = layout});
    EXPECT_NEAR(results[1].at(0), 4097, 1e-3);
    EXPECT_NEAR(results[2].at(0), 2.0 / 3, 1e-4);
  }
}

TEST(BatchNormalizationTest, AConstantChannelHasVarianceZero) {
  const auto contract = std::make_shared<BatchNormalizationTraining>(BatchNormalizationOptions{});
  const Array x(f32({3, 1}), {0.1, 0.1, 0.1});
  const Array one(f32({1}), {1});
  const std::vector<Array> results = test::run_operator(contract, {x, one, one});
  EXPECT_EQ(results[2].at(0), 0);
  EXPECT_EQ(results[0].values(), (std::vector<double>{1, 1, 1}));
}

TEST(BatchNormalizationTest, SaysWhatDoesNotFit) {
  const BatchNormalizationTraining contract(BatchNormalizationOptions{});
  EXPECT_EQ(inference_error(contract, {f32({8, 3, 4, 4}), f32({4}), f32({3})}),
            "[batch_normalization_training] scale is f32[4], x has 3 channels");
  EXPECT_EQ(inference_error(contract, {f32({8, 3, 4, 4}), f32({3}), {{3}, DType::f64}}),
            "[batch_normalization_training] x is f32[8, 3, 4, 4], shift is f64[3]; they must have one dtype");
  EXPECT_EQ(inference_error(contract, {f32({0, 3, 4, 4}), f32({3}), f32({3})}),
            "[batch_normalization_training] x is f32[0, 3, 4, 4]: there is nothing to average");
  EXPECT_EQ(inference_error(BatchNormalizationTraining({-1}), {f32({8, 3}), f32({3}), f32({3})}),
            "[batch_normalization_training] epsilon is -1, at least 0 is needed");
  EXPECT_EQ(inference_error(BatchNormalizationInference(BatchNormalizationOptions{}),
                            {f32({8}), f32({8}), f32({8}), f32({8}), f32({8})}),
            "[batch_normalization_inference] x is f32[8], rank 2 or more is needed; hint: x is [N, C, ...]");
}

TEST(BatchNormalizationTest, IsExactByChannelsAndApproximateByBatch) {
  const std::vector<TensorInfo> inputs{f32({8, 3, 4, 4}), f32({3}), f32({3})};
  const std::vector<SplitRule> rules =
      BatchNormalizationTraining(BatchNormalizationOptions{}).split_rules(inputs);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].inputs, (std::vector<int>{1, 0, 0}));
  EXPECT_FALSE(rules[0].approximate);
  EXPECT_EQ(rules[1].inputs, (std::vector<int>{0, SplitRule::whole, SplitRule::whole}));
  EXPECT_TRUE(rules[1].approximate);
}

TEST(MovingAverageTest, WeighsTheNewValueByTheMomentum) {
  const auto contract = std::make_shared<MovingAverage>(0.25, 2);
  const Array running(f32({2}), {4, 8});
  const Array value(f32({2}), {1, -1});
  EXPECT_EQ(test::run_operator(contract, {running, value})[0].values(), (std::vector<double>{3.5, 5.5}));
  EXPECT_EQ(
      inference_error(MovingAverage(1.5, 1), {f32({2}), f32({2})}),
      "[moving_average] the momentum is 1.5, from 0 to 1 is needed; hint: it is the weight of the new value: "
      "0.1 keeps nine tenths of the running one");
}

}  // namespace
}  // namespace purine::ops
