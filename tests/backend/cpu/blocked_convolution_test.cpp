// Convolution in blocks of our own against plain sums in f64.
#include "purine/backend/cpu/blocked_convolution.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/backend/cpu/convolution.h"
#include "purine/backend/cpu/kernels.h"
#include "purine/ops/sibling_convolution.h"
#include "tests/backend/cpu/compare_kernels.h"
#include "tests/backend/cpu/vector_targets.h"

namespace purine {
namespace {

using cpu::ConvolutionAlgorithm;
using ops::Conv2dOptions;
using test::Array;
using test::f32_values;
using test::PartOrder;

const KernelRegistry& blocked_kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
    cpu::register_cpu_kernels(kernels);
    cpu::set_convolutions(kernels, [](auto, const auto&) { return ConvolutionAlgorithm::blocked; });
    return kernels;
  }();
  return registry;
}

std::vector<Array> run(const ContractPtr& contract, const std::vector<Array>& inputs,
                       PartOrder order = PartOrder::ascending, bool keep_scratch = false) {
  std::vector<Array> single;
  for (const Array& input : inputs) single.push_back(input.as(DType::f32));
  return test::run_operator(contract, single,
                            {.layout = Layout::channels_last,
                             .part_order = order,
                             .keep_scratch = keep_scratch,
                             .kernels = &blocked_kernels()});
}

Array absolute(Array array) {
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, std::abs(array.at(i)));
  return array;
}

/// Expects of each element what sums of `length` products may differ by: a product passes no more roundings
/// than there are products, and two when parts of a sum, and a bias, are added; each is by 2^-24 at most of
/// what is below the sum of all absolute products.
void compare_blocked(const ContractPtr& contract, const std::vector<Array>& inputs, std::int64_t length) {
  std::vector<Array> magnitudes;
  for (const Array& input : inputs) magnitudes.push_back(absolute(input));
  const std::vector<Array> expected = test::run_operator(contract, inputs);
  const std::vector<Array> terms = test::run_operator(contract, magnitudes);
  const std::vector<Array> actual = run(contract, inputs);
  const double share = static_cast<double>(length + 2) * std::ldexp(1, -24);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    for (std::int64_t i = 0; i < expected[k].elements(); ++i) {
      ASSERT_LE(std::abs(actual[k].at(i) - expected[k].at(i)), share * terms[k].at(i))
          << contract->type() << " output " << k << ", element " << i << ": " << actual[k].at(i)
          << ", expected " << expected[k].at(i);
    }
  }
  EXPECT_TRUE(run(contract, inputs, PartOrder::shuffled) == actual) << contract->type();
  EXPECT_TRUE(run(contract, inputs, PartOrder::descending, true) == actual) << contract->type();
}

struct BlockedProblem {
  Shape image;
  std::int64_t outputs = 0;
  std::array<std::int64_t, 2> kernel{1, 1};
  Conv2dOptions options = {};
};

/// All three operators.
void compare_blocked(const BlockedProblem& problem) {
  const auto& [image_shape, outputs, kernel, options] = problem;
  const Array image = f32_values(image_shape, 1);
  const Array weight = f32_values({outputs, image_shape[1], kernel[0], kernel[1]}, 2);
  const Array bias = f32_values({outputs}, 3);
  const auto forward = std::make_shared<ops::Conv2d>(options);
  const Shape output = forward->infer(std::vector{image.info(), weight.info()})[0].shape;
  SCOPED_TRACE(image_shape.text() + " with " + weight.shape().text() + " " + forward->attributes());
  const Array output_gradient = f32_values(output, 4);
  const std::int64_t taps = kernel[0] * kernel[1];
  const std::int64_t pixels = output[0] * output[2] * output[3];
  compare_blocked(forward, {image, weight, bias}, image_shape[1] * taps);
  compare_blocked(forward, {image, weight}, image_shape[1] * taps);
  compare_blocked(
      std::make_shared<ops::Conv2dInputGradient>(options, std::array{image_shape[2], image_shape[3]}),
      {output_gradient, weight}, outputs * taps);
  compare_blocked(std::make_shared<ops::Conv2dWeightGradient>(options, kernel, true),
                  {image, output_gradient}, pixels);
  compare_blocked(std::make_shared<ops::Conv2dWeightGradient>(options, kernel, false),
                  {image, output_gradient}, pixels);
}

TEST(BlockedConvolutionTest, OneByOne) {
  compare_blocked({{1, 16, 1, 1}, 16});
  compare_blocked({{2, 16, 3, 3}, 48});
  compare_blocked({{1, 80, 7, 7}, 32});
}

TEST(BlockedConvolutionTest, SumsOfManyProductsAreMadeInSteps) {
  compare_blocked({{1, 1040, 3, 3}, 32});
  compare_blocked({{2, 32, 7, 7}, 1552});
  compare_blocked({{1, 544, 3, 3}, 16, {3, 3}, {.padding = {1, 1, 1, 1}}});
}

TEST(BlockedConvolutionTest, OneByOneInParts) {
  compare_blocked({{5, 64, 14, 14}, 160});
  compare_blocked({{5, 272, 14, 14}, 64});
}

/// Enough pixels for the gradient to be in blocks; once with a summand, once without.
TEST(BlockedConvolutionTest, Siblings) {
  const Array image = f32_values({3, 528, 26, 27}, 1);
  std::vector<Array> forward = {image};
  std::vector<Array> gradients;
  std::int64_t results = 0;
  for (const std::int64_t channels : {16, 64, 48}) {
    const auto stream = static_cast<std::uint64_t>(channels);
    forward.push_back(f32_values({channels, 528, 1, 1}, stream));
    gradients.push_back(f32_values({3, channels, 26, 27}, stream + 1));
    results += channels;
  }
  compare_blocked(std::make_shared<ops::SiblingConv2d>(), forward, 528);
  gradients.insert(gradients.end(), forward.begin() + 1, forward.end());
  compare_blocked(std::make_shared<ops::SiblingConv2dInputGradient>(3, false), gradients, results);
  gradients.push_back(image);
  compare_blocked(std::make_shared<ops::SiblingConv2dInputGradient>(3, true), gradients, results + 1);
}

TEST(BlockedConvolutionTest, WithStrides) {
  compare_blocked({{2, 32, 9, 8}, 16, {1, 1}, {.stride = {2, 2}}});
  compare_blocked({{2, 32, 9, 8}, 48, {3, 3}, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}});
  compare_blocked({{1, 16, 11, 7}, 16, {3, 5}, {.stride = {3, 1}, .padding = {0, 2, 1, 1}}});
  compare_blocked({{9, 32, 28, 28}, 64, {3, 3}, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}});
}

TEST(BlockedConvolutionTest, PixelsThatNoOutputReads) {
  compare_blocked({{1, 16, 5, 5}, 16, {1, 1}, {.stride = {3, 3}}});
  compare_blocked({{1, 16, 4, 4}, 16, {1, 1}, {.stride = {2, 2}, .padding = {1, 1, 0, 0}}});
}

TEST(BlockedConvolutionTest, PaddingAndDilation) {
  compare_blocked({{2, 16, 6, 7}, 32, {3, 3}, {.padding = {2, 4, 2, 4}, .dilation = {2, 4}}});
  compare_blocked({{1, 16, 5, 5}, 16, {1, 1}, {.padding = {1, 0, 2, 1}}});
  compare_blocked({{1, 16, 6, 6}, 16, {3, 3}, {.padding = {3, 4, 5, 3}}});
}

TEST(BlockedConvolutionTest, EveryVectorTarget) {
  test::with_every_vector_target([] {
    compare_blocked({{1, 48, 5, 5}, 80});
    compare_blocked({{1, 16, 7, 7}, 32, {3, 3}, {.stride = {2, 2}, .padding = {1, 1, 1, 1}}});
  });
}

TEST(BlockedConvolutionTest, ADivisionIntoParts) {
  const auto parts = [](const ContractPtr& contract, const Shape& first, const Shape& second) {
    return test::BoundOperator(contract, {{first, DType::f32}, {second, DType::f32}},
                               {.layout = Layout::channels_last, .kernels = &blocked_kernels()})
        .parts();
  };
  const auto forward = std::make_shared<ops::Conv2d>(Conv2dOptions{});
  EXPECT_EQ(parts(forward, {5, 64, 14, 14}, {160, 64, 1, 1}), 2);
  EXPECT_EQ(parts(forward, {1, 64, 14, 14}, {160, 64, 1, 1}), 1);
  const auto gradient =
      std::make_shared<ops::Conv2dWeightGradient>(Conv2dOptions{}, std::array<std::int64_t, 2>{1, 1}, false);
  EXPECT_EQ(parts(gradient, {16, 256, 14, 14}, {16, 1024, 14, 14}), 8);
  EXPECT_EQ(parts(gradient, {4, 64, 14, 14}, {4, 256, 14, 14}), 1);
}

/// A pixel's results have the same bits beside whatever others, and in a batch of any size.
TEST(BlockedConvolutionTest, APixelHasTheSameBitsBesideAnyOthers) {
  const Array image = f32_values({5, 528, 14, 14}, 1);
  const Array weight = f32_values({64, 528, 1, 1}, 2);
  const auto forward = std::make_shared<ops::Conv2d>(Conv2dOptions{});
  const Array all = run(forward, {image, weight})[0];
  for (const std::int64_t sample : {0, 2, 4}) {
    const Array one = run(forward, {image.slice(0, sample, sample + 1), weight})[0];
    EXPECT_TRUE(one == all.slice(0, sample, sample + 1)) << sample;
  }
}

TEST(BlockedConvolutionTest, WhatItCanCompute) {
  const cpu::ConvolutionProblem possible{
      {2, 16, 7, 7}, {32, 16, 1, 1}, {2, 32, 7, 7}, {}, Layout::channels_last};
  EXPECT_TRUE(cpu::can_compute(ConvolutionAlgorithm::blocked, possible));
  const auto refuses = [&](auto change) {
    cpu::ConvolutionProblem changed = possible;
    change(changed);
    return !cpu::can_compute(ConvolutionAlgorithm::blocked, changed);
  };
  EXPECT_TRUE(refuses([](auto& p) { p.layout = Layout::plain; }));
  EXPECT_TRUE(refuses([](auto& p) { p.weight = {24, 16, 1, 1}; }));
  EXPECT_TRUE(refuses([](auto& p) { p.image = {2, 8, 7, 7}; }));
  EXPECT_TRUE(refuses([](auto& p) { p.options.groups = 2; }));
}

}  // namespace
}  // namespace purine
