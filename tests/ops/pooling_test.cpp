#include "purine/ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

std::string inferred(const Pool2dOptions& options, Shape image) {
  return AveragePool2d(options).infer(std::vector{f32(image)})[0].shape.text();
}

std::string inference_error(const Pool2dOptions& options, TensorInfo image) {
  return error_text([&] { MaxPool2d(options).infer(std::vector{image}); });
}

TEST(PoolingTest, TakesTheGreatestAndWhereItIs) {
  const auto contract = std::make_shared<MaxPool2d>(Pool2dOptions{});
  const Array x(f32({1, 1, 2, 6}), {1, 2, 7, 3, 5, 5, 4, 3, 0, 7, 5, 5});
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    const std::vector<Array> results = test::run_operator(contract, {x}, {.layout = layout});
    EXPECT_EQ(results[0].values(), (std::vector<double>{4, 7, 5}));
    EXPECT_EQ(results[1].values(), (std::vector<double>{2, 0, 0})) << "the first of equal maxima";
    EXPECT_EQ(results[1].dtype(), DType::u8);
  }
}

TEST(PoolingTest, LeavesPaddingOutOfMaxima) {
  const auto contract = std::make_shared<MaxPool2d>(Pool2dOptions{.kernel = {3, 3}, .padding = {1, 1, 1, 1}});
  const Array x(f32({1, 1, 2, 2}), {-4, -3, -2, -1});
  const std::vector<Array> results = test::run_operator(contract, {x});
  EXPECT_EQ(results[0].values(), (std::vector<double>{-1}));
  EXPECT_EQ(results[1].values(), (std::vector<double>{8}));
}

TEST(PoolingTest, ANanIsTheGreatest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto contract = std::make_shared<MaxPool2d>(Pool2dOptions{.kernel = {1, 3}, .stride = {1, 3}});
  const Array x(f32({1, 1, 1, 9}), {nan, 1, 2, 1, nan, 2, 1, 2, nan});
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    const std::vector<Array> results = test::run_operator(contract, {x}, {.layout = layout});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(results[0].at(i)));
    EXPECT_EQ(results[1].values(), (std::vector<double>{0, 1, 2}));
  }
}

TEST(PoolingTest, OfMinusInfinityPointsIntoTheImage) {
  const auto contract = std::make_shared<MaxPool2d>(Pool2dOptions{.padding = {1, 1, 1, 1}});
  const double lowest = -std::numeric_limits<double>::infinity();
  const Array x(f32({1, 1, 2, 2}), {lowest, lowest, lowest, lowest});
  EXPECT_EQ(test::run_operator(contract, {x})[1].values(), (std::vector<double>{3, 2, 1, 0}));
}

TEST(PoolingTest, ALastWindowStartsInsideOfTheImage) {
  // The figures are PyTorch's.
  EXPECT_EQ(inferred({.kernel = {3, 3}, .ceil_mode = true}, {1, 1, 112, 112}), "[1, 1, 56, 56]");
  EXPECT_EQ(inferred({.kernel = {3, 3}}, {1, 1, 112, 112}), "[1, 1, 55, 55]");
  EXPECT_EQ(inferred({.kernel = {3, 3}, .stride = {3, 3}, .padding = {1, 1, 1, 1}, .ceil_mode = true},
                     {1, 1, 6, 7}),
            "[1, 1, 3, 3]");
  EXPECT_EQ(inferred({.kernel = {1, 1}, .stride = {4, 4}, .ceil_mode = true}, {1, 1, 8, 9}), "[1, 1, 2, 3]");
  EXPECT_EQ(inferred({.kernel = {3, 3}, .ceil_mode = true}, {1, 1, 2, 3}), "[1, 1, 1, 1]");
}

TEST(PoolingTest, AveragesCountPaddingButNotWhatLiesBehind) {
  Pool2dOptions options{.kernel = {1, 2}, .stride = {1, 2}, .padding = {0, 1, 0, 0}, .ceil_mode = true};
  const Array x(f32({1, 1, 1, 4}), {2, 4, 6, 8});
  // Windows: padding and 2; 4 and 6; 8 and what lies past the image.
  const auto run = [&] {
    return test::run_operator(std::make_shared<AveragePool2d>(options), {x})[0].values();
  };
  EXPECT_EQ(run(), (std::vector<double>{1, 5, 8}));
  options.count_include_pad = false;
  EXPECT_EQ(run(), (std::vector<double>{2, 5, 8}));
}

TEST(PoolingTest, AnIndexInThePaddingSelectsNothing) {
  const Pool2dOptions options{.padding = {1, 1, 0, 0}};
  const Array x(f32({1, 1, 3, 3}), {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Array index({{1, 1, 2, 2}, DType::u8}, {0, 3, 3, 3});
  const auto select = std::make_shared<MaxPool2dSelect>(options);
  EXPECT_EQ(test::run_operator(select, {x, index})[0].values(), (std::vector<double>{0, 3, 7, 9}));
  const auto gradient = std::make_shared<MaxPool2dGradient>(options, std::array<std::int64_t, 2>{3, 3});
  const Array dy(f32({1, 1, 2, 2}), {10, 20, 30, 40});
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    EXPECT_EQ(test::run_operator(gradient, {dy, index}, {.layout = layout})[0].values(),
              (std::vector<double>{0, 0, 20, 0, 0, 0, 30, 0, 40}));
  }
}

TEST(PoolingTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(inference_error({}, f32({3, 8, 8})),
            "[max_pool2d] x is f32[3, 8, 8], rank 4 is needed; hint: images are [N, C, H, W]");
  EXPECT_EQ(inference_error({}, {{1, 3, 8, 8}, DType::u8}),
            "[max_pool2d] x is u8[1, 3, 8, 8], a floating tensor is needed; hint: convert it: ops::cast(x, "
            "DType::f32)");
  EXPECT_EQ(inference_error({.kernel = {3, 3}, .padding = {0, 0, 3, 0}}, f32({1, 3, 8, 8})),
            "[max_pool2d] the padding is 3 vertically, the kernel 3; hint: padding must be smaller than the "
            "kernel: "
            "every window needs an element");
  EXPECT_EQ(
      inference_error({.kernel = {3, 9}}, f32({1, 3, 8, 8})),
      "[max_pool2d] a window spans 9 elements horizontally, the padded image has 8; hint: make the kernel "
      "smaller or the image or its padding larger");
  EXPECT_EQ(inference_error({.kernel = {0, 2}}, f32({1, 3, 8, 8})),
            "[max_pool2d] the kernel is 0 vertically, at least 1 is needed");
  EXPECT_EQ(inference_error({}, f32({1, 3, 0, 8})),
            "[max_pool2d] an image has 0 x 8 elements, at least 1 x 1 is needed");
  EXPECT_EQ(error_text([] {
              MaxPool2dGradient({}, {8, 8})
                  .infer(std::vector<TensorInfo>{f32({1, 3, 4, 4}), {{1, 3, 4, 4}, DType::i32}});
            }),
            "[max_pool2d_gradient] the maxima's indices are i32[1, 3, 4, 4], pooling gives u8");
  EXPECT_EQ(error_text([] {
              GlobalAveragePool2d().infer(std::vector{f32({1, 3, 0, 4})});
            }),
            "[global_average_pool2d] x is f32[1, 3, 0, 4]: there is nothing to average");
}

TEST(PoolingTest, SaysItsAttributes) {
  EXPECT_EQ(AveragePool2dGradient({.kernel = {3, 2}, .ceil_mode = true}, {7, 8}).attributes(),
            "kernel=[3, 2] stride=[2, 2] padding=[0, 0, 0, 0] ceil_mode=true count_include_pad=true "
            "extents=[7, 8]");
  EXPECT_EQ(MaxPool2d(Pool2dOptions{}).attributes(),
            "kernel=[2, 2] stride=[2, 2] padding=[0, 0, 0, 0] ceil_mode=false");
}

}  // namespace
}  // namespace purine::ops
