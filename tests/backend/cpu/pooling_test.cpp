#include "purine/ops/pooling.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/backend/cpu/compare_kernels.h"
#include "tests/backend/cpu/vector_targets.h"

namespace purine {
namespace {

using ops::Pool2dOptions;
using test::Array;
using test::compare_kernels;
using test::normal_array;
using test::run_operator;

/// Compares all of pooling's operators in both layouts with f64.
void compare(const Pool2dOptions& options, const Shape& shape, int least_parts = 1) {
  const test::Comparison comparison{.least_parts = least_parts};
  const std::array<std::int64_t, 2> extents{shape[2], shape[3]};
  const Array x = normal_array(shape, 1);
  const auto maximum = std::make_shared<ops::MaxPool2d>(options);
  const std::vector<Array> maxima = run_operator(maximum, {x});
  const Array output_gradient = normal_array(maxima[0].shape(), 2);
  compare_kernels(maximum, {x}, comparison);
  compare_kernels(std::make_shared<ops::MaxPool2dGradient>(options, extents), {output_gradient, maxima[1]},
                  comparison);
  compare_kernels(std::make_shared<ops::MaxPool2dSelect>(options), {x, maxima[1]}, comparison);
  for (const bool count_include_pad : {true, false}) {
    Pool2dOptions average = options;
    average.count_include_pad = count_include_pad;
    compare_kernels(std::make_shared<ops::AveragePool2d>(average), {x}, comparison);
    compare_kernels(std::make_shared<ops::AveragePool2dGradient>(average, extents), {output_gradient},
                    comparison);
  }
}

TEST(CpuPoolingTest, OverlappingWindowsInParts) {
  compare({.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}, {5, 64, 28, 28}, 3);
}

TEST(CpuPoolingTest, SameExtents) {
  compare({.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}}, {2, 40, 7, 9});
}

TEST(CpuPoolingTest, ChannelsThatNoVectorDivides) {
  compare({.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 0, 0, 2}}, {3, 21, 9, 8});
  compare({.kernel = {2, 2}, .stride = {2, 2}}, {3, 1, 9, 8});
}

TEST(CpuPoolingTest, WindowsOfMoreThan256Elements) {
  compare({.kernel = {17, 16}, .stride = {3, 3}, .ceil_mode = true}, {2, 18, 24, 24});
}

TEST(CpuPoolingTest, EveryVectorTarget) {
  test::with_every_vector_target([] {
    compare({.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0, 0, 1}, .ceil_mode = true}, {2, 35, 6, 7});
    compare({.kernel = {16, 17}, .stride = {2, 2}}, {1, 19, 18, 18});
  });
}

TEST(CpuPoolingTest, GapsBetweenWindows) {
  compare({.kernel = {1, 2}, .stride = {3, 4}}, {2, 17, 11, 13});
}

TEST(CpuPoolingTest, GlobalAverages) {
  const Array x = normal_array({3, 37, 7, 5}, 1);
  compare_kernels(std::make_shared<ops::GlobalAveragePool2d>(), {x});
  compare_kernels(std::make_shared<ops::GlobalAveragePool2dGradient>(std::array<std::int64_t, 2>{7, 5}),
                  {normal_array({3, 37, 1, 1}, 2)});
}

}  // namespace
}  // namespace purine
