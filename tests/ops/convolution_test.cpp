#include "purine/ops/convolution.h"

#include <gtest/gtest.h>

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

Array ones(Shape shape) {
  Array array(f32(shape));
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, 1);
  return array;
}

TEST(Conv2dTest, CountsNeighboursWithAllOnes) {
  const auto contract = std::make_shared<Conv2d>(Conv2dOptions{.padding = {1, 1, 1, 1}});
  const Array y = test::run_operator(contract, {ones({1, 1, 3, 4}), ones({1, 1, 3, 3})})[0];
  EXPECT_EQ(y.values(), (std::vector<double>{4, 6, 6, 4, 6, 9, 9, 6, 4, 6, 6, 4}));
}

TEST(Conv2dTest, CorrelatesAndDoesNotFlipTheKernel) {
  const auto contract = std::make_shared<Conv2d>(Conv2dOptions{});
  const Array image(f32({1, 1, 2, 3}), {1, 2, 3, 4, 5, 6});
  const Array weight(f32({1, 1, 2, 2}), {1, 10, 100, 1000});
  const Array bias(f32({1}), {0.5});
  const Array y = test::run_operator(contract, {image, weight, bias})[0];
  EXPECT_EQ(y.values(), (std::vector<double>{5421.5, 6532.5}));
}

TEST(Conv2dTest, InfersExtentsRoundedDown) {
  const Conv2d contract({.stride = {2, 3}, .padding = {1, 0, 2, 1}, .dilation = {2, 1}});
  EXPECT_EQ(contract.infer(std::vector{f32({5, 4, 10, 11}), f32({6, 4, 3, 2})})[0].text(), "f32[5, 6, 5, 4]");
  EXPECT_EQ(contract.attributes(), "stride=[2, 3] padding=[1, 0, 2, 1] dilation=[2, 1] groups=1");
}

TEST(Conv2dTest, SaysWhatDoesNotFit) {
  const Conv2d plain({});
  const std::string hint =
      "; hint: image is [N, C, H, W], weight is [output channels, C / groups, height, width]";
  EXPECT_EQ(inference_error(plain, {f32({8, 1, 28, 28}), f32({20, 3, 5, 5})}),
            "[conv2d] weight has 3 input channels, image has 1" + hint);
  EXPECT_EQ(inference_error(Conv2d({.groups = 2}), {f32({8, 6, 9, 9}), f32({4, 6, 3, 3})}),
            "[conv2d] weight has 6 input channels in each of 2 groups, image has 6" + hint);
  EXPECT_EQ(inference_error(Conv2d({.groups = 3}), {f32({8, 6, 9, 9}), f32({4, 2, 3, 3})}),
            "[conv2d] 4 output channels do not divide into 3 groups");
  EXPECT_EQ(inference_error(Conv2d({.groups = 0}), {f32({8, 6, 9, 9}), f32({4, 2, 3, 3})}),
            "[conv2d] there are 0 groups, at least 1 is needed");
  EXPECT_EQ(inference_error(plain, {f32({8, 28, 28}), f32({20, 3, 5, 5})}),
            "[conv2d] image is f32[8, 28, 28], rank 4 is needed" + hint);
  EXPECT_EQ(inference_error(plain, {f32({8, 1, 28, 28}), f32({20, 25})}),
            "[conv2d] weight is f32[20, 25], rank 4 is needed" + hint);
  EXPECT_EQ(inference_error(plain, {f32({8, 1, 28, 28}), {{20, 1, 5, 5}, DType::f64}}),
            "[conv2d] image is f32[8, 1, 28, 28], weight is f64[20, 1, 5, 5]; they must have one dtype");
  EXPECT_EQ(inference_error(plain, {f32({8, 1, 28, 28}), f32({20, 1, 5, 5}), f32({1, 20})}),
            "[conv2d] bias is f32[1, 20], the weight's 20 output channels need [20]");
  EXPECT_EQ(inference_error(Conv2d({.padding = {1, 0, 0, 0}}), {f32({8, 1, 4, 28}), f32({20, 1, 6, 5})}),
            "[conv2d] a window spans 6 elements vertically, the padded image has 5; hint: make the kernel "
            "smaller or the image or its padding larger");
  EXPECT_EQ(
      inference_error(Conv2d({.dilation = {1, 9}}), {f32({8, 1, 28, 28}), f32({20, 1, 5, 5})}),
      "[conv2d] a window spans 37 elements horizontally, the padded image has 28; hint: make the kernel "
      "smaller or the image or its padding larger");
  EXPECT_EQ(inference_error(Conv2d({.stride = {1, 0}}), {f32({8, 1, 28, 28}), f32({20, 1, 5, 5})}),
            "[conv2d] the stride is 0 horizontally, at least 1 is needed");
  EXPECT_EQ(inference_error(Conv2d({.padding = {0, 0, -1, 0}}), {f32({8, 1, 28, 28}), f32({20, 1, 5, 5})}),
            "[conv2d] the padding is -1 vertically, at least 0 is needed");
  EXPECT_EQ(inference_error(plain, {f32({8, 0, 28, 28}), f32({20, 0, 5, 5})}),
            "[conv2d] an image has 0 channels of 28 x 28 elements, at least 1 of each is needed");
  EXPECT_EQ(inference_error(plain, {f32({8, 1, 28, 28})}), "[conv2d] takes 2 inputs, got 1");
  EXPECT_EQ(
      inference_error(Conv2dInputGradient({}, {28, 28}), {f32({8, 20, 23, 24}), f32({20, 1, 5, 5})}),
      "[conv2d_input_gradient] the output's gradient is 23 x 24, an image of 28 x 28 and a kernel of 5 x 5 "
      "give 24 x 24");
}

TEST(Conv2dTest, ErrorsNameThePathInTheGraph) {
  Graph graph;
  const auto scope = graph.scope("lenet/conv1");
  const Tensor image = graph.input("image", f32({8, 1, 28, 28}));
  const Tensor weight = graph.input("weight", f32({20, 3, 5, 5}));
  EXPECT_EQ(error_text([&] { conv2d(image, weight); }).substr(0, 69),
            "[conv2d] lenet/conv1/conv2d: weight has 3 input channels, image has 1");
}

TEST(Conv2dTest, BuildsOnlyTheGradientsThatAreNeeded) {
  Graph graph;
  const Tensor image = graph.input("image", f32({8, 3, 9, 9}));
  const Tensor weight = graph.input("weight", f32({4, 3, 3, 3}));
  const Tensor bias = graph.input("bias", f32({4}));
  const Tensor y = conv2d(image, weight, bias);
  const std::vector<Tensor> output_gradient{graph.input("gradient", y.info())};
  const auto gradients = [&](std::vector<bool> needed) {
    return y.producer().contract().gradient({y.producer(), output_gradient, needed});
  };
  const auto first_layer = gradients({false, true, true});
  EXPECT_FALSE(first_layer[0].valid());
  EXPECT_EQ(first_layer[1].producer().type(), "conv2d_weight_gradient");
  EXPECT_EQ(first_layer[1].producer(), first_layer[2].producer());
  const auto fixed_weights = gradients({true, false, false});
  EXPECT_EQ(fixed_weights[0].producer().type(), "conv2d_input_gradient");
  EXPECT_FALSE(fixed_weights[1].valid());
  EXPECT_EQ(gradients({false, true, false})[1].producer().output_count(), 1);
}

TEST(Conv2dTest, IsDividedByBatchOutputsAndInputs) {
  const Conv2d contract({});
  const std::vector<TensorInfo> inputs{f32({8, 6, 9, 9}), f32({4, 6, 3, 3}), f32({4})};
  const std::vector<SplitRule> rules = contract.split_rules(inputs);
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].inputs, (std::vector<int>{0, SplitRule::whole, SplitRule::whole}));
  EXPECT_EQ(rules[1].inputs, (std::vector<int>{SplitRule::whole, 0, 0}));
  EXPECT_EQ(rules[2].inputs, (std::vector<int>{1, 1, SplitRule::whole}));
  EXPECT_EQ(rules[2].outputs, (std::vector<int>{SplitRule::partial}));
  EXPECT_EQ(rules[2].units, 6);
}

TEST(Conv2dTest, OnlyTheFirstPieceOverTheInputChannelsAddsTheBias) {
  const auto contract = std::make_shared<Conv2d>(Conv2dOptions{});
  const std::vector<TensorInfo> inputs{f32({1, 4, 3, 3}), f32({2, 4, 3, 3}), f32({2})};
  const SplitRule rule = contract->split_rules(inputs)[2];
  Array sum(f32({1, 2, 1, 1}));
  for (const std::int64_t begin : {0, 2}) {
    const ContractPtr piece = contract->piece(rule, {begin, begin + 2, 4}, inputs);
    EXPECT_EQ(std::dynamic_pointer_cast<const Conv2d>(piece)->adds_bias(), begin == 0);
    const Array y = test::run_operator(piece, {ones({1, 2, 3, 3}), ones({2, 2, 3, 3}), ones({2})})[0];
    for (std::int64_t i = 0; i < 2; ++i) sum.set(i, sum.at(i) + y.at(i));
  }
  EXPECT_EQ(sum.values(), (std::vector<double>{37, 37}));
}

TEST(Conv2dTest, APieceOfGroupsHasThoseGroups) {
  const auto contract = std::make_shared<Conv2d>(Conv2dOptions{.groups = 4});
  const std::vector<TensorInfo> inputs{f32({1, 8, 3, 3}), f32({4, 2, 3, 3})};
  const std::vector<SplitRule> rules = contract->split_rules(inputs);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[1].units, 4);
  const ContractPtr piece = contract->piece(rules[1], {1, 4, 4}, inputs);
  EXPECT_EQ(std::dynamic_pointer_cast<const Conv2d>(piece)->options().groups, 3);
  EXPECT_EQ(piece->infer(std::vector{f32({1, 6, 3, 3}), f32({3, 2, 3, 3})})[0].text(), "f32[1, 3, 1, 1]");
}

TEST(Conv2dTest, CountsAMultiplyAddAsTwo) {
  const Conv2dOptions options{.stride = {2, 2}, .padding = {3, 3, 3, 3}};
  const TensorInfo image = f32({32, 3, 224, 224});
  const TensorInfo weight = f32({64, 3, 7, 7});
  const TensorInfo output = f32({32, 64, 112, 112});
  const double operations = 2.0 * 32 * 64 * 112 * 112 * 3 * 7 * 7;
  const auto cost = [](const Contract& contract, std::vector<TensorInfo> inputs) {
    return contract.cost(inputs, contract.infer(inputs)).operations;
  };
  EXPECT_EQ(cost(Conv2d(options), {image, weight}), operations);
  EXPECT_EQ(cost(Conv2dInputGradient(options, {224, 224}), {output, weight}), operations);
  EXPECT_EQ(cost(Conv2dWeightGradient(options, {7, 7}, true), {image, output}), operations);
}

TEST(Conv2dTest, OfNoImagesIsNothing) {
  const auto forward = std::make_shared<Conv2d>(Conv2dOptions{});
  EXPECT_EQ(test::run_operator(forward, {ones({0, 2, 4, 4}), ones({3, 2, 3, 3})})[0].info().text(),
            "f32[0, 3, 2, 2]");
  const auto gradient =
      std::make_shared<Conv2dWeightGradient>(Conv2dOptions{}, std::array<std::int64_t, 2>{3, 3}, true);
  const std::vector<Array> results = test::run_operator(gradient, {ones({0, 2, 4, 4}), ones({0, 3, 2, 2})});
  EXPECT_EQ(results[0].values(), std::vector<double>(54, 0));
  EXPECT_EQ(results[1].values(), std::vector<double>(3, 0));
}

}  // namespace
}  // namespace purine::ops
