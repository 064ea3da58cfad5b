// Winograd's convolution against plain sums in f64, which it may differ from as derived in winograd_terms.h.
#include "purine/backend/cpu/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/backend/cpu/convolution.h"
#include "purine/backend/cpu/winograd_transposed.h"
#include "tests/backend/cpu/compare_kernels.h"
#include "tests/backend/cpu/vector_targets.h"
#include "tests/backend/cpu/winograd_terms.h"

namespace purine {
namespace {

using cpu::ConvolutionAlgorithm;
using ops::Conv2dOptions;
using test::Array;
using test::BoundOperator;
using test::f32_values;
using test::forward_terms;
using test::normal_array;
using test::Transforms;
using test::transposed_terms;
using test::weight_gradient_terms;

struct WinogradProblem {
  Conv2dOptions options;
  Shape image;
  Shape weight;
};

/// Expects |actual - expected| <= roundings * 2^-24 * terms, element by element.
void expect_within(const Array& actual, const Array& expected, const Array& terms, double roundings,
                   const std::string& what) {
  ASSERT_EQ(actual.shape().text(), expected.shape().text()) << what;
  ASSERT_EQ(terms.shape().text(), expected.shape().text()) << what;
  for (std::int64_t i = 0; i < actual.elements(); ++i) {
    const double allowed = roundings * std::ldexp(1, -24) * terms.at(i);
    ASSERT_LE(std::abs(actual.at(i) - expected.at(i)), allowed)
        << what << ", element " << i << ": " << actual.at(i) << ", expected " << expected.at(i);
  }
}

KernelRegistry kernels_of(ConvolutionAlgorithm algorithm) {
  KernelRegistry registry;
  cpu::set_convolutions(registry, [=](cpu::ConvolutionPass, const cpu::ConvolutionProblem& problem) {
    return cpu::can_compute(algorithm, problem) ? algorithm : ConvolutionAlgorithm::direct;
  });
  return registry;
}

ConvolutionAlgorithm algorithm_of(int m) {
  return m == 2 ? ConvolutionAlgorithm::winograd_2 : ConvolutionAlgorithm::winograd_4;
}

std::vector<Array> run(const ContractPtr& contract, const std::vector<Array>& inputs, int m) {
  const KernelRegistry kernels = kernels_of(algorithm_of(m));
  std::vector<Array> single;
  for (const Array& input : inputs) single.push_back(input.as(DType::f32));
  return test::run_operator(contract, single, {.layout = Layout::channels_last, .kernels = &kernels});
}

// Roundings that a result passes through, constants that are no f32 numbers included. Input: two dimensions
// of at most 3; weight: 5 each; result: 4 each; output gradient: 3 each; weight gradient: 5 each; input
// gradient: 5 each, and as many as tiles overlap.
constexpr double forward_roundings(std::int64_t channels) {
  return 2 * 3 + 2 * 5 + static_cast<double>(channels) + 2 * 4 + 1;
}
constexpr double transposed_roundings(std::int64_t channels, const int m, const int n) {
  const int overlap = (n + m - 1) / m;
  return 2 * 3 + 2 * 5 + static_cast<double>(channels) + 2 * 5 + overlap * overlap;
}
constexpr double weight_gradient_roundings(std::int64_t tiles) {
  return 2 * 3 + 2 * 3 + static_cast<double>(tiles) + 2 * 5;
}

void compare_winograd(const WinogradProblem& problem) {
  const auto& [options, image_shape, weight_shape] = problem;
  const Array image = f32_values(image_shape, 1);
  const Array weight = f32_values(weight_shape, 2);
  const Array bias = f32_values({weight_shape[0]}, 3);
  const auto forward = std::make_shared<ops::Conv2d>(options);
  const Shape output_shape = forward->infer(std::vector{image.info(), weight.info()})[0].shape;
  const Array output_gradient = f32_values(output_shape, 4);
  const auto input_gradient = std::make_shared<ops::Conv2dInputGradient>(
      options, std::array<std::int64_t, 2>{image_shape[2], image_shape[3]});
  const std::int64_t channels = image_shape[1];
  const std::int64_t outputs = weight_shape[0];
  const std::int64_t extent = weight_shape[2];
  const auto weight_gradient =
      std::make_shared<ops::Conv2dWeightGradient>(options, std::array{extent, extent}, true);
  const auto weight_at = [&](std::int64_t o, std::int64_t c, std::int64_t p, std::int64_t q) {
    return weight.at(((o * channels + c) * extent + p) * extent + q);
  };
  for (const int m : {2, 4}) {
    if (!cpu::winograd_applies(weight_shape, options, m)) continue;
    const std::string what = "m = " + std::to_string(m) + ", image " + image_shape.text() + ", weight " +
                             weight_shape.text() + " " + forward->attributes();
    const Transforms transforms(m, static_cast<int>(extent));
    Array terms =
        forward_terms(transforms, image, output_shape, options.padding[0], options.padding[1], weight_at);
    const std::int64_t plane = output_shape[2] * output_shape[3];
    for (std::int64_t i = 0; i < terms.elements(); ++i) {
      terms.set(i, terms.at(i) + std::abs(bias.at(i / plane % outputs)));
    }
    expect_within(run(forward, {image, weight, bias}, m)[0],
                  test::run_operator(forward, {image, weight, bias})[0], terms, forward_roundings(channels),
                  "forward, " + what);
    const Array image_gradient = run(input_gradient, {output_gradient, weight}, m)[0];
    const Array exact_gradient = test::run_operator(input_gradient, {output_gradient, weight})[0];
    if (cpu::winograd_transposed_is_less(image_shape, weight_shape, output_shape, m)) {
      expect_within(image_gradient, exact_gradient,
                    transposed_terms(transforms, output_gradient, image_shape, options, weight_at),
                    transposed_roundings(outputs, m, transforms.n), "transposed input gradient, " + what);
    } else {
      expect_within(image_gradient, exact_gradient,
                    forward_terms(transforms, output_gradient, image_shape, extent - 1 - options.padding[0],
                                  extent - 1 - options.padding[1],
                                  [&](std::int64_t c, std::int64_t o, int p, int q) {
                                    return weight_at(o, c, extent - 1 - p, extent - 1 - q);
                                  }),
                    forward_roundings(outputs), "input gradient, " + what);
    }
    const std::vector<Array> actual = run(weight_gradient, {image, output_gradient}, m);
    const std::vector<Array> expected = test::run_operator(weight_gradient, {image, output_gradient});
    const auto tiles = [&](std::int64_t length) { return (length + m - 1) / m; };
    expect_within(actual[0], expected[0], weight_gradient_terms(transforms, image, output_gradient, options),
                  weight_gradient_roundings(image_shape[0] * tiles(output_shape[2]) * tiles(output_shape[3])),
                  "weight gradient, " + what);
    Array bias_terms({{outputs}, DType::f64});
    for (std::int64_t i = 0; i < output_gradient.elements(); ++i) {
      const std::int64_t o = i / plane % outputs;
      bias_terms.set(o, bias_terms.at(o) + std::abs(output_gradient.at(i)));
    }
    expect_within(actual[1], expected[1], bias_terms, static_cast<double>(image_shape[0] * plane),
                  "bias gradient, " + what);
  }
}

constexpr Conv2dOptions padded_by_one{.padding = {1, 1, 1, 1}};

TEST(WinogradTest, WholeTiles) {
  test::with_every_vector_target([] { compare_winograd({padded_by_one, {2, 16, 8, 8}, {32, 16, 3, 3}}); });
}

TEST(WinogradTest, ExtentsThatAreNoMultiplesOfATile) {
  test::with_every_vector_target([] {
    compare_winograd({padded_by_one, {2, 16, 7, 9}, {16, 16, 3, 3}});
    compare_winograd({padded_by_one, {1, 8, 5, 6}, {24, 8, 3, 3}});
    compare_winograd({padded_by_one, {1, 4, 1, 2}, {4, 4, 3, 3}});
  });
}

TEST(WinogradTest, ChannelsThatNoVectorDivides) {
  test::with_every_vector_target([] {
    compare_winograd({padded_by_one, {2, 1, 6, 6}, {1, 1, 3, 3}});
    compare_winograd({padded_by_one, {2, 5, 6, 7}, {3, 5, 3, 3}});
    compare_winograd({padded_by_one, {1, 19, 5, 5}, {53, 19, 3, 3}});
  });
}

TEST(WinogradTest, EveryPadding) {
  test::with_every_vector_target([] {
    for (std::int64_t before = 0; before <= 2; ++before) {
      for (std::int64_t after = 0; after <= 2; ++after) {
        compare_winograd({{.padding = {before, after, after, before}}, {1, 3, 5, 6}, {4, 3, 3, 3}});
      }
    }
    // Results that no pixel reaches; windows that start after the image's first pixel.
    compare_winograd({{.padding = {4, 3, 3, 5}}, {1, 2, 4, 3}, {3, 2, 3, 3}});
  });
}

TEST(WinogradTest, FiveByFive) {
  test::with_every_vector_target([] {
    compare_winograd({{.padding = {2, 2, 2, 2}}, {2, 16, 8, 8}, {32, 16, 5, 5}});
    compare_winograd({{.padding = {2, 2, 2, 2}}, {1, 5, 7, 9}, {19, 5, 5, 5}});
    compare_winograd({{.padding = {0, 1, 4, 5}}, {2, 1, 6, 5}, {2, 1, 5, 5}});
    compare_winograd({{}, {1, 3, 5, 5}, {2, 3, 5, 5}});
  });
}

TEST(WinogradTest, OutputsThatAreSmallerThanTheImage) {
  EXPECT_TRUE(cpu::winograd_transposed_is_less({64, 20, 12, 12}, {50, 20, 5, 5}, {64, 50, 8, 8}, 2));
  EXPECT_FALSE(cpu::winograd_transposed_is_less({64, 20, 12, 12}, {50, 20, 5, 5}, {64, 50, 12, 12}, 2));
  test::with_every_vector_target([] {
    compare_winograd({{}, {3, 20, 12, 12}, {10, 20, 5, 5}});
    compare_winograd({{}, {2, 53, 7, 8}, {3, 53, 3, 3}});
    compare_winograd({{.padding = {1, 0, 0, 1}}, {2, 4, 9, 10}, {17, 4, 5, 5}});
  });
}

TEST(WinogradTest, ASinglePixelOfOutput) {
  test::with_every_vector_target([] { compare_winograd({{}, {1, 6, 3, 3}, {5, 6, 3, 3}}); });
}

TEST(WinogradTest, SumsOverManyChannels) {
  compare_winograd({padded_by_one, {1, 300, 4, 4}, {8, 300, 3, 3}});
}

/// The bits of a result depend on nothing but its own terms and, of a weight gradient, on how many tiles
/// there are: not on the parts, their order or their number, nor on what is computed beside it.
class WinogradPartsTest : public ::testing::TestWithParam<int> {
 protected:
  int tile() const { return GetParam(); }
  test::RunOptions options() const { return {.layout = Layout::channels_last, .kernels = &kernels_}; }
  /// Runs an operator in several parts, which give the same bits in any order and again.
  std::vector<Array> run_in_parts(const ContractPtr& contract, const std::vector<Array>& inputs) const {
    test::RunOptions options = this->options();
    BoundOperator bound(contract, test::infos_of(inputs), options);
    EXPECT_GE(bound.parts(), 2);
    const std::vector<Array> results = bound.run(inputs);
    EXPECT_TRUE(bound.run(inputs) == results) << "again";
    for (const test::PartOrder order : {test::PartOrder::descending, test::PartOrder::shuffled}) {
      options.part_order = order;
      for (const bool keep_scratch : {false, true}) {
        options.keep_scratch = keep_scratch;
        EXPECT_TRUE(test::run_operator(contract, inputs, options) == results) << "another order";
      }
    }
    return results;
  }

  KernelRegistry kernels_ = kernels_of(algorithm_of(tile()));
};

TEST_P(WinogradPartsTest, OverTiles) {
  constexpr std::int64_t samples = 32;
  const Array image = normal_array({samples, 32, 32, 32}, 1, DType::f32);
  const Array weight = normal_array({128, 32, 3, 3}, 2, DType::f32);
  const auto forward = std::make_shared<ops::Conv2d>(padded_by_one);
  const Array result = run_in_parts(forward, {image, weight})[0];
  for (const std::int64_t sample : {std::int64_t{0}, samples / 2, samples - 1}) {
    const Array alone =
        test::run_operator(forward, {image.slice(0, sample, sample + 1), weight}, options())[0];
    EXPECT_TRUE(result.slice(0, sample, sample + 1) == alone) << sample;
  }
}

TEST_P(WinogradPartsTest, OverSamplesOfTheTranspose) {
  constexpr std::int64_t samples = 64;
  const Array output_gradient = normal_array({samples, 48, 8, 8}, 1, DType::f32);
  const Array weight = normal_array({48, 32, 3, 3}, 2, DType::f32);
  ASSERT_TRUE(cpu::winograd_transposed_is_less({samples, 32, 10, 10}, weight.shape(), output_gradient.shape(),
                                               tile()));
  const auto input_gradient =
      std::make_shared<ops::Conv2dInputGradient>(Conv2dOptions{}, std::array<std::int64_t, 2>{10, 10});
  const Array result = run_in_parts(input_gradient, {output_gradient, weight})[0];
  for (const std::int64_t sample : {std::int64_t{0}, samples / 2, samples - 1}) {
    const Array alone = test::run_operator(
        input_gradient, {output_gradient.slice(0, sample, sample + 1), weight}, options())[0];
    EXPECT_TRUE(result.slice(0, sample, sample + 1) == alone) << sample;
  }
}

TEST_P(WinogradPartsTest, OverChannelsOfFewTiles) {
  const Array image = normal_array({3, 512, 8, 8}, 1, DType::f32);
  const Array weight = normal_array({400, 512, 3, 3}, 2, DType::f32);
  const Array output_gradient = normal_array({3, 400, 8, 8}, 3, DType::f32);
  const auto forward = std::make_shared<ops::Conv2d>(padded_by_one);
  const auto input_gradient =
      std::make_shared<ops::Conv2dInputGradient>(padded_by_one, std::array<std::int64_t, 2>{8, 8});
  const auto weight_gradient =
      std::make_shared<ops::Conv2dWeightGradient>(padded_by_one, std::array<std::int64_t, 2>{3, 3}, false);
  const Array result = run_in_parts(forward, {image, weight})[0];
  const Array image_gradient = run_in_parts(input_gradient, {output_gradient, weight})[0];
  const Array kernel_gradient = run_in_parts(weight_gradient, {image, output_gradient})[0];
  // Some channels alone, in one part.
  const auto alone = [&](const ContractPtr& contract, const std::vector<Array>& inputs) {
    EXPECT_EQ(BoundOperator(contract, test::infos_of(inputs), options()).parts(), 1);
    return test::run_operator(contract, inputs, options())[0];
  };
  for (const std::int64_t first : {0, 190, 380}) {
    EXPECT_TRUE(result.slice(1, first, first + 20) ==
                alone(forward, {image, weight.slice(0, first, first + 20)}))
        << first;
    EXPECT_TRUE(image_gradient.slice(1, first, first + 20) ==
                alone(input_gradient, {output_gradient, weight.slice(1, first, first + 20)}))
        << first;
    EXPECT_TRUE(kernel_gradient.slice(0, first, first + 20) ==
                alone(weight_gradient, {image, output_gradient.slice(1, first, first + 20)}))
        << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, WinogradPartsTest, ::testing::Values(2, 4));

/// In root mean square, beside sums in f32 over channels and the elements of the window.
TEST(WinogradTest, ErrorsAreLittleLargerThanThoseOfPlainSums) {
  constexpr std::int64_t channels = 128;
  constexpr std::int64_t extent = 24;
  for (const std::int64_t kernel : {3, 5}) {
    const std::int64_t pad = kernel / 2;
    const Array image = f32_values({1, channels, extent, extent}, 1);
    const Array weight = f32_values({8, channels, kernel, kernel}, 2);
    const auto forward = std::make_shared<ops::Conv2d>(Conv2dOptions{.padding = {pad, pad, pad, pad}});
    const Array exact = test::run_operator(forward, {image, weight})[0];
    const auto error = [&](const Array& actual) {
      double squares = 0;
      for (std::int64_t i = 0; i < exact.elements(); ++i) {
        const double difference = actual.at(i) - exact.at(i);
        squares += difference * difference;
      }
      return std::sqrt(squares / static_cast<double>(exact.elements()));
    };
    Array plain({exact.shape(), DType::f32});
    for (std::int64_t at = 0; at < plain.elements(); ++at) {
      float sum = 0;
      for (std::int64_t k = 0; k < kernel * kernel; ++k) {
        const std::int64_t row = at / extent % extent + k / kernel - pad;
        const std::int64_t column = at % extent + k % kernel - pad;
        if (row < 0 || row >= extent || column < 0 || column >= extent) continue;
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t o = at / (extent * extent);
          sum = std::fma(static_cast<float>(image.at((c * extent + row) * extent + column)),
                         static_cast<float>(weight.at((o * channels + c) * kernel * kernel + k)), sum);
        }
      }
      plain.set(at, static_cast<double>(sum));
    }
    EXPECT_LT(error(run(forward, {image, weight}, 2)[0]), (kernel == 3 ? 1 : 1.5) * error(plain));
    if (kernel == 5) continue;
    EXPECT_LT(error(run(forward, {image, weight}, 4)[0]), 2 * error(plain));
  }
}

TEST(WinogradTest, OnlyComputesWhatItCan) {
  const cpu::ConvolutionProblem possible{
      {1, 4, 8, 8}, {4, 4, 3, 3}, {1, 4, 8, 8}, padded_by_one, Layout::channels_last};
  EXPECT_TRUE(cpu::can_compute(ConvolutionAlgorithm::winograd_2, possible));
  EXPECT_TRUE(cpu::can_compute(ConvolutionAlgorithm::winograd_4, possible));
  const auto refuses = [&](const std::function<void(cpu::ConvolutionProblem&)>& change) {
    cpu::ConvolutionProblem changed = possible;
    change(changed);
    return !cpu::can_compute(ConvolutionAlgorithm::winograd_4, changed) &&
           cpu::can_compute(ConvolutionAlgorithm::direct, changed);
  };
  EXPECT_TRUE(refuses([](auto& problem) { problem.layout = Layout::plain; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.options.stride = {1, 2}; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.options.dilation = {2, 1}; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.options.groups = 2; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.weight = {4, 4, 3, 1}; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.weight = {4, 4, 5, 5}; }));
  EXPECT_TRUE(refuses([](auto& problem) { problem.weight = {4, 4, 7, 7}; }));
}

}  // namespace
}  // namespace purine
