#include "purine/ops/normalization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/backend/cpu/compare_kernels.h"
#include "tests/backend/cpu/vector_targets.h"

namespace purine {
namespace {

using ops::LocalResponseNormalizationOptions;
using test::Array;
using test::compare_kernels;
using test::normal_array;

Array positive_array(const Shape& shape, std::uint64_t stream) {
  Array array = normal_array(shape, stream);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, 0.5 + std::abs(array.at(i)));
  return array;
}

void compare_responses(const LocalResponseNormalizationOptions& options, const Shape& shape,
                       int least_parts) {
  const Array x = normal_array(shape, 1);
  const Array output_gradient = normal_array(shape, 2);
  compare_kernels(std::make_shared<ops::LocalResponseNormalization>(options), {x},
                  {.least_parts = least_parts});
  compare_kernels(std::make_shared<ops::LocalResponseNormalizationGradient>(options), {output_gradient, x},
                  {.least_parts = least_parts});
}

TEST(CpuLocalResponseNormalizationTest, InParts) {
  compare_responses({.alpha = 0.5}, {4, 64, 18, 18}, 2);
}

TEST(CpuLocalResponseNormalizationTest, ExtentsThatNoVectorDivides) {
  compare_responses({.size = 5, .alpha = 0.7, .k = 2}, {2, 19, 5, 7}, 1);
  compare_responses({.size = 4, .alpha = 0.7, .beta = 0.6}, {2, 3, 1, 5}, 1);
  compare_responses({.size = 9, .alpha = 0.7, .beta = 1.25}, {2, 33}, 1);
}

TEST(CpuLocalResponseNormalizationTest, EveryVectorTarget) {
  test::with_every_vector_target([] {
    compare_responses({.alpha = 0.7}, {2, 19, 5, 7}, 1);
    compare_responses({.alpha = 0.7, .beta = 1.25}, {1, 35, 3, 3}, 1);
  });
}

void compare_batch_normalization(const Shape& shape, int parts_in_plain_layout) {
  const ops::BatchNormalizationOptions options{1e-3};
  const Shape channels{shape[1]};
  const Array x = normal_array(shape, 1);
  const Array output_gradient = normal_array(shape, 2);
  const Array scale = normal_array(channels, 3);
  const Array shift = normal_array(channels, 4);
  const Array mean = normal_array(channels, 5);
  const Array variance = positive_array(channels, 6);
  const auto training = std::make_shared<ops::BatchNormalizationTraining>(options);
  const std::vector<Array> results = test::run_operator(training, {x, scale, shift});
  compare_kernels(training, {x, scale, shift}, {.tolerance = 5e-6});
  compare_kernels(std::make_shared<ops::BatchNormalizationTrainingGradient>(options),
                  {output_gradient, x, scale, results[1], results[2]}, {.tolerance = 5e-6});
  compare_kernels(std::make_shared<ops::BatchNormalizationInference>(options),
                  {x, scale, shift, mean, variance});
  compare_kernels(std::make_shared<ops::BatchNormalizationInferenceGradient>(options),
                  {output_gradient, x, scale, mean, variance}, {.tolerance = 5e-6});
  const test::BoundOperator bound(training,
                                  {{shape, DType::f32}, {channels, DType::f32}, {channels, DType::f32}});
  EXPECT_EQ(bound.parts(), parts_in_plain_layout);
}

TEST(CpuBatchNormalizationTest, InPartsOverTheChannels) {
  compare_batch_normalization({6, 50, 28, 28}, 3);
}

/// In several parts where the channels are last, too: each channel has the bits that it has beside others.
TEST(CpuBatchNormalizationTest, ManyChannelsInPartsWhereTheyAreLast) {
  const ops::BatchNormalizationOptions options{1e-3};
  const test::RunOptions last{.layout = Layout::channels_last};
  const Shape channels{521};
  const Array x = normal_array({6, 521, 7, 7}, 1, DType::f32);
  const Array scale = normal_array(channels, 2, DType::f32);
  const Array shift = normal_array(channels, 3, DType::f32);
  const Array output_gradient = normal_array(x.shape(), 4, DType::f32);
  const auto training = std::make_shared<ops::BatchNormalizationTraining>(options);
  const auto gradient = std::make_shared<ops::BatchNormalizationTrainingGradient>(options);
  const std::vector<Array> inputs = {x, scale, shift};
  EXPECT_EQ(test::BoundOperator(training, test::infos_of(inputs), last).parts(), 2);
  const std::vector<Array> results = test::run_operator(training, inputs, last);
  const std::vector<Array> gradient_inputs = {output_gradient, x, scale, results[1], results[2]};
  EXPECT_EQ(test::BoundOperator(gradient, test::infos_of(gradient_inputs), last).parts(), 2);
  const std::vector<Array> gradients = test::run_operator(gradient, gradient_inputs, last);
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{250}, std::int64_t{501}}) {
    const auto some = [&](const Array& array) {
      return array.slice(array.shape().rank() == 1 ? 0 : 1, first, first + 20);
    };
    const auto all_some = [&](const std::vector<Array>& arrays) {
      std::vector<Array> slices;
      for (const Array& array : arrays) slices.push_back(some(array));
      return slices;
    };
    EXPECT_TRUE(test::run_operator(training, all_some(inputs), last) == all_some(results)) << first;
    EXPECT_TRUE(test::run_operator(gradient, all_some(gradient_inputs), last) == all_some(gradients))
        << first;
  }
}

/// Bit by bit as by the three operators one after the other.
TEST(CpuBatchNormalizationTest, WhatIsAddedAndRectifiedInOnePass) {
  test::with_every_vector_target([] {
    for (const Shape& shape : {Shape{2, 19, 5, 7}, Shape{6, 521, 7, 7}, Shape{40, 21}}) {
      const Shape channels{shape[1]};
      const Array x = normal_array(shape, 1, DType::f32);
      const Array summand = normal_array(shape, 2, DType::f32);
      const Array scale = normal_array(channels, 3, DType::f32);
      const Array shift = normal_array(channels, 4, DType::f32);
      const Array mean = normal_array(channels, 5, DType::f32);
      const Array variance = positive_array(channels, 6).as(DType::f32);
      const auto expect_same = [&](const ContractPtr& plain, const ContractPtr& fused,
                                   std::vector<Array> inputs) {
        for (const Layout layout : {Layout::plain, Layout::channels_last}) {
          const test::RunOptions options{.layout = layout};
          std::vector<Array> expected = test::run_operator(plain, inputs, options);
          for (std::int64_t i = 0; i < expected[0].elements(); ++i) {
            const auto sum = static_cast<float>(expected[0].at(i)) + static_cast<float>(summand.at(i));
            expected[0].set(i, static_cast<double>(std::max(sum, 0.0F)));
          }
          std::vector<Array> with_summand = inputs;
          with_summand.push_back(summand);
          EXPECT_TRUE(test::run_operator(fused, with_summand, options) == expected)
              << plain->type() << " " << shape.text();
        }
      };
      const ops::BatchNormalizationOptions alone{1e-3};
      const ops::BatchNormalizationOptions fused{1e-3, true, true};
      expect_same(std::make_shared<ops::BatchNormalizationTraining>(alone),
                  std::make_shared<ops::BatchNormalizationTraining>(fused), {x, scale, shift});
      expect_same(std::make_shared<ops::BatchNormalizationInference>(alone),
                  std::make_shared<ops::BatchNormalizationInference>(fused),
                  {x, scale, shift, mean, variance});
    }
  });
}

TEST(CpuBatchNormalizationTest, ExtentsThatNoVectorDivides) {
  compare_batch_normalization({3, 19, 5, 7}, 1);
  compare_batch_normalization({40, 21}, 1);
  compare_batch_normalization({2, 3, 4, 5, 3}, 1);
  compare_batch_normalization({1, 1, 3, 3}, 1);
}

TEST(CpuBatchNormalizationTest, EveryVectorTarget) {
  test::with_every_vector_target([] { compare_batch_normalization({2, 19, 5, 7}, 1); });
}

TEST(CpuMovingAverageTest, OfManyElements) {
  compare_kernels(std::make_shared<ops::MovingAverage>(0.1, 1.5),
                  {normal_array({200000}, 1), normal_array({200000}, 2)}, {.least_parts = 3});
}

}  // namespace
}  // namespace purine
