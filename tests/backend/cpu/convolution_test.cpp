#include "purine/ops/convolution.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "purine/backend/cpu/worker_thread.h"
#include "tests/backend/cpu/compare_kernels.h"

namespace purine {
namespace {

using ops::Conv2dOptions;
using test::Array;
using test::compare_kernels;
using test::normal_array;

struct Problem {
  Conv2dOptions options;
  Shape image;
  Shape weight;
  int least_parts = 1;
};

/// Compares all three operators in both layouts with f64.
void compare(const Problem& problem) {
  const Array image = normal_array(problem.image, 1);
  const Array weight = normal_array(problem.weight, 2);
  const Array bias = normal_array({problem.weight[0]}, 3);
  const auto forward = std::make_shared<ops::Conv2d>(problem.options);
  const Shape output = forward->infer(std::vector{image.info(), weight.info()})[0].shape;
  const Array output_gradient = normal_array(output, 4);
  compare_kernels(forward, {image, weight, bias}, {.least_parts = problem.least_parts});
  compare_kernels(std::make_shared<ops::Conv2dInputGradient>(
                      problem.options, std::array<std::int64_t, 2>{problem.image[2], problem.image[3]}),
                  {output_gradient, weight}, {.least_parts = problem.least_parts});
  const std::array<std::int64_t, 2> kernel{problem.weight[2], problem.weight[3]};
  compare_kernels(std::make_shared<ops::Conv2dWeightGradient>(problem.options, kernel, true),
                  {image, output_gradient}, {.tolerance = 1e-5});
}

TEST(CpuConvolutionTest, PointwiseInParts) {
  compare({{}, {16, 64, 14, 14}, {64, 64, 1, 1}, 3});
}

TEST(CpuConvolutionTest, ThreeByThreeInUnequalParts) {
  compare({{.padding = {1, 1, 1, 1}}, {11, 16, 14, 14}, {24, 16, 3, 3}, 2});
}

TEST(CpuConvolutionTest, StemWithThreeChannels) {
  compare({{.stride = {2, 2}, .padding = {3, 3, 3, 3}}, {3, 3, 42, 42}, {16, 3, 7, 7}});
}

TEST(CpuConvolutionTest, FiveByFiveOnSmallImages) {
  compare({{.padding = {2, 2, 2, 2}}, {4, 16, 7, 7}, {48, 16, 5, 5}});
}

TEST(CpuConvolutionTest, LeNetWithASingleChannel) {
  compare({{}, {3, 1, 28, 28}, {20, 1, 5, 5}});
  compare({{}, {1, 20, 12, 12}, {50, 20, 5, 5}});
}

TEST(CpuConvolutionTest, WithoutBias) {
  const Array image = normal_array({2, 16, 9, 9}, 1);
  compare_kernels(std::make_shared<ops::Conv2d>(Conv2dOptions{}), {image, normal_array({32, 16, 3, 3}, 2)});
  compare_kernels(
      std::make_shared<ops::Conv2dWeightGradient>(Conv2dOptions{}, std::array<std::int64_t, 2>{3, 3}, false),
      {image, normal_array({2, 32, 7, 7}, 3)});
}

TEST(CpuConvolutionTest, ChannelsThatNoVectorDivides) {
  compare({{.stride = {2, 1}, .padding = {0, 1, 2, 0}}, {3, 7, 11, 9}, {13, 7, 3, 2}});
}

TEST(CpuConvolutionTest, Dilation) {
  compare({{.padding = {2, 4, 2, 4}, .dilation = {2, 4}}, {2, 16, 13, 13}, {16, 16, 3, 3}});
}

TEST(CpuConvolutionTest, Groups) {
  compare({{.padding = {2, 2, 2, 2}, .groups = 2}, {1, 32, 9, 9}, {48, 16, 5, 5}});
  compare({{.padding = {1, 1, 1, 1}, .groups = 3}, {2, 15, 9, 9}, {21, 5, 3, 3}});
}

TEST(CpuConvolutionTest, Depthwise) {
  compare({{.stride = {2, 2}, .padding = {1, 1, 1, 1}, .groups = 32}, {2, 32, 15, 15}, {32, 1, 3, 3}});
  compare({{.padding = {1, 1, 1, 1}, .groups = 5}, {2, 5, 9, 9}, {10, 1, 3, 3}});
}

TEST(CpuConvolutionTest, PaddingAsWideAsTheKernel) {
  compare({{.padding = {3, 4, 5, 3}}, {2, 8, 6, 6}, {8, 8, 3, 3}});
}

TEST(CpuConvolutionTest, WeightGradientsOverManyPixelsAreSummedFromParts) {
  const Conv2dOptions options{.padding = {1, 1, 1, 1}};
  const Array image = normal_array({8, 8, 64, 64}, 1);
  const Array output_gradient = normal_array({8, 24, 64, 64}, 2);
  compare_kernels(
      std::make_shared<ops::Conv2dWeightGradient>(options, std::array<std::int64_t, 2>{3, 3}, true),
      {image, output_gradient}, {.tolerance = 1e-5, .least_parts = 2});
}

/// Runs the parts of a kernel at the same time, each on a thread of its own, and returns the first output.
std::vector<float> run_on_threads(Kernel& kernel, std::span<std::byte* const> inputs,
                                  std::size_t output_bytes, std::size_t other_output_bytes) {
  test::GuardedBuffer output(output_bytes);
  test::GuardedBuffer other_output(other_output_bytes);
  std::byte* outputs[] = {output.data(), other_output.data()};
  std::vector<std::thread> threads;
  for (int part = 0; part < kernel.parts(); ++part) {
    threads.emplace_back([&, part] {
      cpu::prepare_worker_thread();
      test::GuardedBuffer scratch(kernel.scratch_bytes());
      KernelCall call;
      call.inputs = inputs;
      call.outputs = outputs;
      call.scratch = scratch.data();
      call.part = part;
      kernel.run(call);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto* values = reinterpret_cast<const float*>(output.data());
  return {values, values + output_bytes / sizeof(float)};
}

TEST(CpuConvolutionTest, WeightGradientsHaveTheSameBitsFromPartsAtTheSameTime) {
  const Shape image_shape{8, 8, 64, 64};
  const Shape gradient_shape{8, 24, 64, 64};
  const auto contract = std::make_shared<ops::Conv2dWeightGradient>(Conv2dOptions{.padding = {1, 1, 1, 1}},
                                                                    std::array<std::int64_t, 2>{3, 3}, true);
  Array image = normal_array(image_shape, 1, DType::f32);
  Array gradient = normal_array(gradient_shape, 2, DType::f32);
  const std::vector<Array> expected = test::run_operator(contract, {image, gradient});

  const std::vector<TensorInfo> inputs{image.info(), gradient.info()};
  const std::vector<TensorInfo> outputs = contract->infer(inputs);
  const std::vector<Layout> plain(2, Layout::plain);
  const auto kernel = test::cpu_kernels().bind({*contract, inputs, outputs, plain, plain, 1, 1, "test"});
  ASSERT_GT(kernel->parts(), 1);
  std::byte* const pointers[] = {image.bytes(), gradient.bytes()};
  for (int iteration = 0; iteration < 5; ++iteration) {
    const std::vector<float> results =
        run_on_threads(*kernel, pointers, outputs[0].bytes(), outputs[1].bytes());
    EXPECT_EQ(std::vector<double>(results.begin(), results.end()), expected[0].values()) << iteration;
  }
}

}  // namespace
}  // namespace purine
