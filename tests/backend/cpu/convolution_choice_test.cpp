#include "purine/backend/cpu/convolution_choice.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace purine {
namespace {

using cpu::ConvolutionAlgorithm;

constexpr ops::Conv2dOptions padded{.padding = {1, 1, 1, 1}};

/// Square images, 3 x 3 kernels.
ConvolutionAlgorithm chosen(cpu::ConvolutionPass pass, std::int64_t batch, std::int64_t channels,
                            std::int64_t extent, std::int64_t outputs) {
  return cpu::choose_convolution(pass, {{batch, channels, extent, extent},
                                        {outputs, channels, 3, 3},
                                        {batch, outputs, extent, extent},
                                        padded,
                                        Layout::channels_last});
}

TEST(ConvolutionChoiceTest, FollowsTheMultiplicationsThatTilesSave) {
  for (const auto pass : {cpu::ConvolutionPass::forward, cpu::ConvolutionPass::input_gradient,
                          cpu::ConvolutionPass::weight_gradient}) {
    EXPECT_EQ(chosen(pass, 32, 64, 56, 192), ConvolutionAlgorithm::winograd_4);
    EXPECT_EQ(chosen(pass, 32, 192, 7, 384), ConvolutionAlgorithm::winograd_4);
    // Tiles of 4 x 4 would mostly lie outside of images of 2 x 2.
    EXPECT_EQ(chosen(pass, 256, 192, 2, 192), ConvolutionAlgorithm::winograd_2);
    // Too few channels to share a transform, too few pixels to share the weights'.
    EXPECT_EQ(chosen(pass, 32, 3, 56, 8), ConvolutionAlgorithm::direct);
    EXPECT_EQ(chosen(pass, 1, 192, 7, 384), ConvolutionAlgorithm::direct);
  }
}

TEST(ConvolutionChoiceTest, FiveByFive) {
  const cpu::ConvolutionProblem problem{
      {64, 96, 16, 16}, {192, 96, 5, 5}, {64, 192, 16, 16}, {.padding = {2, 2, 2, 2}}, Layout::channels_last};
  EXPECT_EQ(cpu::choose_convolution(cpu::ConvolutionPass::forward, problem),
            ConvolutionAlgorithm::winograd_2);
}

TEST(ConvolutionChoiceTest, WithoutPaddingTheInputGradientHasTheTilesOfTheOutput) {
  const cpu::ConvolutionProblem problem{
      {64, 20, 12, 12}, {50, 20, 5, 5}, {64, 50, 8, 8}, {}, Layout::channels_last};
  EXPECT_EQ(cpu::choose_convolution(cpu::ConvolutionPass::input_gradient, problem),
            ConvolutionAlgorithm::winograd_2);
}

TEST(ConvolutionChoiceTest, OwnBlocksWherePixelsAreFewOrApart) {
  using cpu::ConvolutionPass;
  // The last convolutions of a residual network: 1 x 1 of many channels, and those that halve the image.
  const cpu::ConvolutionProblem deep{
      {16, 2048, 7, 7}, {512, 2048, 1, 1}, {16, 512, 7, 7}, {}, Layout::channels_last};
  const cpu::ConvolutionProblem shortcut{
      {16, 1024, 14, 14}, {2048, 1024, 1, 1}, {16, 2048, 7, 7}, {.stride = {2, 2}}, Layout::channels_last};
  const cpu::ConvolutionProblem halving{{16, 256, 28, 28},
                                        {256, 256, 3, 3},
                                        {16, 256, 14, 14},
                                        {.stride = {2, 2}, .padding = {1, 1, 1, 1}},
                                        Layout::channels_last};
  for (const auto& problem : {deep, shortcut}) {
    EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::forward, problem), ConvolutionAlgorithm::blocked);
    EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::input_gradient, problem),
              ConvolutionAlgorithm::direct);
    EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::weight_gradient, problem),
              ConvolutionAlgorithm::blocked);
  }
  EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::forward, halving), ConvolutionAlgorithm::direct);
  EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::weight_gradient, halving),
            ConvolutionAlgorithm::blocked);
  cpu::ConvolutionProblem plain = deep;
  plain.layout = Layout::plain;
  EXPECT_EQ(cpu::choose_convolution(ConvolutionPass::forward, plain), ConvolutionAlgorithm::direct);
}

TEST(ConvolutionChoiceTest, TakesNothingThatCannotComputeIt) {
  const cpu::ConvolutionProblem large{
      {32, 64, 56, 56}, {192, 64, 3, 3}, {32, 192, 56, 56}, padded, Layout::plain};
  EXPECT_EQ(cpu::choose_convolution(cpu::ConvolutionPass::forward, large), ConvolutionAlgorithm::direct);
}

}  // namespace
}  // namespace purine
