#include "purine/program/fusion.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/ops/batch_normalization.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/convolution.h"
#include "purine/ops/pooling.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/sum_n.h"

namespace purine::program {
namespace {

/// x, normalised and rectified, with the gradients of its mean by scale and shift.
struct Normalized {
  Graph graph;
  Variable scale;
  Variable shift;
  ops::BatchNormalizationResult normalized;
  Tensor y;
  std::vector<Tensor> gradients;

  explicit Normalized(const std::function<void(Normalized&)>& before_gradients = {}) {
    const Tensor x = graph.input("x", {{2, 3, 4, 4}, DType::f32});
    const TensorInfo parameter{{3}, DType::f32};
    scale = graph.variable("scale", parameter, ops::make_constant(parameter, 1));
    shift = graph.variable("shift", parameter, ops::make_constant(parameter, 0));
    normalized = ops::batch_normalization_training(x, scale, shift, {}, "norm");
    y = ops::relu(normalized.y, "rectified");
    if (before_gradients) before_gradients(*this);
    gradients = purine::gradients(ops::mean(y), std::vector<Tensor>{scale, shift});
  }

  Fusions fusions() { return find_fusions(graph, std::vector<bool>(graph.operator_count(), true)); }
  const FusedOperator* fused_at(Tensor tensor) {
    found = fusions();
    const auto entry = found.fused.find(tensor.producer().index());
    return entry == found.fused.end() ? nullptr : &entry->second;
  }
  Fusions found;
};

TEST(FusionTest, ARectifierJoinsTheNormalizationBelowIt) {
  Normalized network;
  const FusedOperator* fused = network.fused_at(network.normalized.y);
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->path, "norm + rectified");
  EXPECT_EQ(fused->contract->type(), "batch_normalization_training");
  EXPECT_EQ(fused->contract->attributes(), "epsilon=1e-05 relu=true");
  EXPECT_EQ(fused->inputs, network.normalized.y.producer().inputs());
  EXPECT_EQ(fused->outputs, (std::vector{network.y, network.normalized.mean, network.normalized.variance}));
  EXPECT_TRUE(network.found.absorbed[network.y.producer().index()]);
}

TEST(FusionTest, SoDoTheirGradients) {
  Normalized network;
  const FusedOperator* fused = network.fused_at(network.gradients[0]);
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->contract->type(), "batch_normalization_training_gradient");
  ASSERT_EQ(fused->inputs.size(), 6);
  EXPECT_NE(fused->inputs[0].producer().type(), "relu_gradient");
  EXPECT_EQ(fused->inputs[5], network.shift);
  EXPECT_EQ(fused->outputs, network.gradients[0].producer().outputs());
  EXPECT_EQ(network.found.saved(), 2);
}

TEST(FusionTest, WhatIsFusedHasTheSameOutputs) {
  Normalized network;
  for (const auto& [op, fused] : network.fusions().fused) {
    std::vector<TensorInfo> inputs;
    for (const Tensor input : fused.inputs) inputs.push_back(input.info());
    std::vector<TensorInfo> outputs;
    for (const Tensor output : fused.outputs) outputs.push_back(output.info());
    EXPECT_EQ(fused.contract->infer(inputs), outputs) << fused.path;
  }
}

TEST(FusionTest, WhatTheHostReadsStaysByItself) {
  Normalized network([](Normalized& made) { made.graph.watch(made.normalized.y); });
  EXPECT_TRUE(network.fusions().fused.empty());
}

TEST(FusionTest, WhatAnotherOperatorReadsStaysByItself) {
  Normalized network([](Normalized& made) { ops::mean(made.normalized.y); });
  EXPECT_TRUE(network.fusions().fused.empty());
}

TEST(FusionTest, ReadersThatDontRunDontCount) {
  Normalized network([](Normalized& made) { ops::mean(made.normalized.y, {}, false, "dead"); });
  std::vector<bool> live(network.graph.operator_count(), true);
  for (std::uint32_t i = 0; i < network.graph.operator_count(); ++i) {
    if (network.graph.op(i).path() == "dead") live[i] = false;
  }
  EXPECT_EQ(find_fusions(network.graph, live).fused.size(), 2);
}

TEST(FusionTest, WhatBecomesAVariableStaysByItself) {
  Graph graph;
  const TensorInfo info{{4, 3}, DType::f32};
  const Variable state = graph.variable("state", info, ops::make_constant(info, 1));
  const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
  const Tensor y = ops::batch_normalization_training(state, ones, ones).y;
  graph.set_next(state, y);
  graph.watch(ops::mean(ops::relu(y)));
  EXPECT_TRUE(find_fusions(graph, std::vector<bool>(graph.operator_count(), true)).fused.empty());
}

TEST(FusionTest, OperatorsOfTwoLocationsStayByThemselves) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
  const Tensor y = ops::batch_normalization_training(x, ones, ones).y;
  const auto place = graph.at({0, DeviceKind::cpu, 1});
  graph.watch(ops::relu(y));
  EXPECT_TRUE(find_fusions(graph, std::vector<bool>(graph.operator_count(), true)).fused.empty());
}

TEST(FusionTest, OperatorsOfACudaDeviceStayByThemselves) {
  Graph graph;
  const auto place = graph.at({0, DeviceKind::cuda, 0});
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
  graph.watch(ops::relu(ops::batch_normalization_training(x, ones, ones).y));
  EXPECT_TRUE(find_fusions(graph, std::vector<bool>(graph.operator_count(), true)).fused.empty());
}

/// What a residual block ends with: the sum of two normalised images, rectified.
struct Residual {
  Graph graph;
  Tensor first;   // normalised
  Tensor second;  // normalised later
  Tensor sum;
  Tensor y;

  explicit Residual(bool second_is_normalized) {
    const Tensor x = graph.input("x", {{4, 3, 2, 2}, DType::f32});
    const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
    first = ops::batch_normalization_training(x, ones, ones, {}, "first").y;
    second = second_is_normalized ? ops::batch_normalization_training(x, ones, ones, {}, "second").y : x;
    sum = ops::add(first, second, "sum");
    y = ops::relu(sum, "rectified");
    graph.watch(y);
  }
  Fusions fusions() { return find_fusions(graph, std::vector<bool>(graph.operator_count(), true)); }
};

TEST(FusionTest, AResidualSumAndItsRectifierJoinTheNormalization) {
  Residual residual(false);
  const Fusions found = residual.fusions();
  ASSERT_EQ(found.fused.size(), 1);
  const auto& [place, fused] = *found.fused.begin();
  EXPECT_EQ(place, residual.first.producer().index());
  EXPECT_EQ(fused.path, "first + sum + rectified");
  EXPECT_EQ(fused.contract->type(), "batch_normalization_training");
  EXPECT_EQ(fused.contract->attributes(), "epsilon=1e-05 relu=true adds=true");
  EXPECT_EQ(fused.inputs.back(), residual.second);
  EXPECT_EQ(fused.outputs[0], residual.y);
  EXPECT_EQ(found.saved(), 2);
}

TEST(FusionTest, OfTwoNormalizationsTheSumJoinsTheLater) {
  Residual residual(true);
  const Fusions found = residual.fusions();
  ASSERT_EQ(found.fused.size(), 1);
  const auto& [place, fused] = *found.fused.begin();
  EXPECT_EQ(place, residual.second.producer().index());
  EXPECT_EQ(fused.path, "second + sum + rectified");
  EXPECT_EQ(fused.inputs.back(), residual.first);
}

TEST(FusionTest, ASumThatIsReadByMoreStaysByItself) {
  Residual residual(false);
  residual.graph.watch(residual.sum);
  EXPECT_TRUE(residual.fusions().fused.empty());
}

TEST(FusionTest, WhatIsAddedMustBeMadeBefore) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
  const Tensor normalized = ops::batch_normalization_training(x, ones, ones).y;
  graph.watch(ops::relu(ops::add(normalized, ops::relu(x))));
  EXPECT_TRUE(find_fusions(graph, std::vector<bool>(graph.operator_count(), true)).fused.empty());
}

TEST(FusionTest, InInferenceToo) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
  const Tensor y = ops::relu(ops::batch_normalization_inference(x, ones, ones, ones, ones));
  graph.watch(y);
  const Fusions found = find_fusions(graph, std::vector<bool>(graph.operator_count(), true));
  ASSERT_EQ(found.fused.size(), 1);
  EXPECT_EQ(found.fused.begin()->second.outputs, std::vector{y});
}

/// Three 1 x 1 convolutions of an image, a pooled image, and the gradient of their means by the weights
/// below.
struct Branches {
  Graph graph;
  Tensor image;
  std::vector<Tensor> results;
  std::vector<Tensor> gradients;

  explicit Branches(const std::function<void(Branches&)>& before_gradients = {},
                    ops::Conv2dOptions options = {}) {
    const Tensor x = graph.input("x", {{2, 3, 4, 4}, DType::f32});
    const Variable first = weight("first", {5, 3, 1, 1});
    image = ops::conv2d(x, first, {}, {}, "below");
    for (const std::int64_t channels : {2, 4, 6}) {
      const std::string name = "branch" + std::to_string(channels);
      results.push_back(ops::conv2d(image, weight(name + "_weight", {channels, 5, 1, 1}), {}, options, name));
    }
    std::vector<Tensor> means;
    for (const Tensor result : results) means.push_back(ops::mean(result));
    means.push_back(ops::mean(ops::max_pool2d(image)));
    if (before_gradients) before_gradients(*this);
    gradients = purine::gradients(ops::sum_n(means), {first});
  }

  Variable weight(const std::string& name, Shape shape) {
    const TensorInfo info{shape, DType::f32};
    return graph.variable(name, info, ops::make_constant(info, 1));
  }
  Fusions fusions() { return find_fusions(graph, std::vector<bool>(graph.operator_count(), true)); }
};

TEST(FusionTest, ConvolutionsOfOneImageRunAsOne) {
  Branches network;
  const Fusions found = network.fusions();
  const auto entry = found.fused.find(network.results[0].producer().index());
  ASSERT_NE(entry, found.fused.end());
  const FusedOperator& fused = entry->second;
  EXPECT_EQ(fused.path, "branch2 + branch4 + branch6");
  EXPECT_EQ(fused.contract->type(), "sibling_conv2d");
  EXPECT_EQ(fused.inputs.size(), 4);
  EXPECT_EQ(fused.outputs, network.results);
}

TEST(FusionTest, AndSoDoTheirGradientsWithTheSumOfAll) {
  Branches network;
  const Fusions found = network.fusions();
  int sums = 0;
  for (const auto& [op, fused] : found.fused) {
    if (fused.contract->type() != "sibling_conv2d_input_gradient") continue;
    ++sums;
    EXPECT_EQ(fused.contract->attributes(), "siblings=3 adds=true");
    EXPECT_EQ(fused.inputs.back().producer().type(), "max_pool2d_gradient");
    EXPECT_EQ(fused.outputs[0].producer().type(), "sum_n");
    std::vector<TensorInfo> inputs;
    for (const Tensor input : fused.inputs) inputs.push_back(input.info());
    EXPECT_EQ(fused.contract->infer(inputs), std::vector{network.image.info()});
  }
  EXPECT_EQ(sums, 1);
  EXPECT_EQ(found.saved(), 5);
}

TEST(FusionTest, ConvolutionsThatMoveOverTheImageStayByThemselves) {
  Branches strided({}, {.stride = {2, 2}});
  EXPECT_TRUE(strided.fusions().fused.empty());
  Branches padded({}, {.padding = {1, 1, 1, 1}});
  EXPECT_TRUE(padded.fusions().fused.empty());
}

TEST(FusionTest, AWeightThatIsMadeLaterKeepsItsConvolutionApart) {
  Branches network([](Branches& made) {
    const Tensor weight = ops::relu(made.graph.find_variable("branch2_weight"));
    made.results.push_back(ops::conv2d(made.image, weight, {}, {}, "late"));
  });
  const Fusions found = network.fusions();
  EXPECT_EQ(found.fused.at(network.results[0].producer().index()).outputs.size(), 3);
  EXPECT_FALSE(found.absorbed[network.results[3].producer().index()]);
}

/// An image, rectified and pooled, with the gradient of the mean by it.
struct RectifiedAndPooled {
  Graph graph;
  Tensor x;
  Tensor y;
  Tensor maxima;
  Tensor gradient;

  explicit RectifiedAndPooled(const ops::Pool2dOptions& options = {}) {
    const TensorInfo info{{2, 3, 4, 4}, DType::f32};
    x = graph.variable("x", info, ops::make_constant(info, 1));
    y = ops::relu(x, "rectified");
    maxima = ops::max_pool2d(y, options, "pooled");
    gradient = purine::gradients(ops::mean(maxima), std::vector<Tensor>{x})[0];
    graph.watch(gradient);
  }
  Fusions fusions() { return find_fusions(graph, std::vector<bool>(graph.operator_count(), true)); }
};

TEST(FusionTest, ARectifierRunsAfterThePoolingThatAloneReadsIt) {
  RectifiedAndPooled network;
  const Fusions found = network.fusions();
  ASSERT_EQ(found.swapped.size(), 2);
  const auto& [first, second] = found.swapped.at(network.maxima.producer().index());
  EXPECT_EQ(first.path, "pooled");
  EXPECT_EQ(first.inputs, std::vector{network.x});
  EXPECT_EQ(first.outputs, network.maxima.producer().outputs());
  EXPECT_EQ(second.path, "rectified");
  EXPECT_EQ(second.inputs, std::vector{network.maxima});
  EXPECT_EQ(second.outputs, std::vector{network.maxima});
  EXPECT_EQ(found.saved(), 0);
}

TEST(FusionTest, TheGradientOfARectifierRunsBeforeThatOfThePooling) {
  RectifiedAndPooled network;
  const Fusions found = network.fusions();
  const Operator spread = network.gradient.producer().input(0).producer();
  const auto& [first, second] = found.swapped.at(spread.index());
  EXPECT_EQ(first.contract->type(), "relu_gradient");
  EXPECT_EQ(first.inputs, (std::vector{spread.input(0), network.maxima}));
  EXPECT_EQ(first.outputs, std::vector{spread.input(0)});
  EXPECT_EQ(second.contract->type(), "max_pool2d_gradient");
  EXPECT_EQ(second.inputs, spread.inputs());
  EXPECT_EQ(second.outputs, std::vector{network.gradient});
}

TEST(FusionTest, ARectifierStaysBeforePoolingThatLeavesAsMany) {
  RectifiedAndPooled network({.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}});
  EXPECT_TRUE(network.fusions().swapped.empty());
}

TEST(FusionTest, ARectifierStaysBeforePoolingWhereOthersReadItToo) {
  RectifiedAndPooled watched;
  watched.graph.watch(watched.y);
  EXPECT_TRUE(watched.fusions().swapped.empty());
  RectifiedAndPooled read;
  ops::mean(read.y);
  EXPECT_TRUE(read.fusions().swapped.empty());
}

TEST(FusionTest, ARectifierStaysBeforePoolingWhoseGradientOthersReadToo) {
  RectifiedAndPooled network;
  network.graph.watch(network.gradient.producer().input(0));
  EXPECT_TRUE(network.fusions().swapped.empty());
  RectifiedAndPooled by_maxima;
  by_maxima.graph.watch(by_maxima.gradient.producer().input(0).producer().input(0));
  EXPECT_TRUE(by_maxima.fusions().swapped.empty());
}

}  // namespace
}  // namespace purine::program
