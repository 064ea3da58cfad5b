#include "purine/nn/layers.h"

#include <gtest/gtest.h>

#include "purine/gradient/gradient.h"
#include "purine/graph/transform.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/reduce.h"
#include "purine/ops/reshape.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine::nn {
namespace {

using test::error_text;

/// Every variable as `path info` and its flags, in order.
std::string variables(Graph& graph) {
  std::string text;
  for (const Variable variable : graph.variables()) {
    text += variable.path() + " " + variable.info().text() + (variable.trainable() ? " trainable" : "") +
            (variable.decays() ? " decays" : "") + (variable.has_next() ? " next" : "") + "\n";
  }
  return text;
}

Tensor image(Graph& graph) {
  return graph.input("image", {{2, 4, 8, 8}, DType::f32});
}

TEST(LayersTest, Conv2dMakesWeightAndBias) {
  Graph graph;
  auto scope = graph.scope("net");
  const Tensor y = conv2d(image(graph), 6, {3, 5}, {.stride = 2, .padding = {1, 2}, .groups = 2}, "conv1");
  EXPECT_EQ(y.info().text(), "f32[2, 6, 4, 4]");
  EXPECT_EQ(y.path(), "net/conv1/conv2d");
  EXPECT_EQ(variables(graph),
            "net/conv1/weight f32[6, 2, 3, 5] trainable decays\n"
            "net/conv1/bias f32[6] trainable\n");
  EXPECT_EQ(conv2d(y, 3, 1, {.has_bias = false}).path(), "net/conv2d/conv2d");
  EXPECT_FALSE(graph.find_variable("net/conv2d/bias").valid());
  verify(graph);
}

TEST(LayersTest, Conv2dTakesItsInitialisers) {
  Graph graph;
  conv2d(image(graph), 6, 3, {.weight = normal(0, 0.01), .bias = constant(0.2)}, "own");
  EXPECT_EQ(graph.find_variable("own/weight").initial().type(), "random_normal");
  EXPECT_EQ(graph.find_variable("own/bias").initial().attributes(),
            constant(0.2)({{6}, DType::f32})->attributes());
  conv2d(graph.find_input("image"), 6, 3, {}, "usual");
  // ±1 / sqrt(4 * 3 * 3)
  EXPECT_EQ(graph.find_variable("usual/weight").initial().attributes(),
            uniform(-1.0 / 6, 1.0 / 6)({{6, 4, 3, 3}, DType::f32})->attributes());
}

TEST(LayersTest, LinearMakesWeightAndBias) {
  Graph graph;
  const Tensor y = linear(ops::flatten(image(graph)), 10, {}, "fc");
  EXPECT_EQ(y.info().text(), "f32[2, 10]");
  EXPECT_EQ(variables(graph), "fc/weight f32[10, 256] trainable decays\nfc/bias f32[10] trainable\n");
  linear(y, 3, {.has_bias = false}, "last");
  EXPECT_FALSE(graph.find_variable("last/bias").valid());
  verify(graph);
}

TEST(LayersTest, BiasAddsOneValueAChannel) {
  Graph graph;
  const Tensor y = bias(image(graph), {.bias = constant(1)}, "shift");
  EXPECT_EQ(y.info().text(), "f32[2, 4, 8, 8]");
  EXPECT_EQ(y.path(), "shift/add");
  bias(y, {.axis = -1}, "columns");
  EXPECT_EQ(variables(graph), "shift/bias f32[4] trainable\ncolumns/bias f32[8] trainable\n");
  verify(graph);
}

TEST(LayersTest, BatchNormalizationHasTheSameVariablesInBothModes) {
  Graph training;
  const Tensor y = batch_normalization(image(training), Mode::training, {}, "norm");
  EXPECT_EQ(y.producer().type(), "batch_normalization_training");
  EXPECT_EQ(variables(training),
            "norm/scale f32[4] trainable\n"
            "norm/shift f32[4] trainable\n"
            "norm/running_mean f32[4] next\n"
            "norm/running_variance f32[4] next\n");
  verify(training);

  Graph inference;
  EXPECT_EQ(batch_normalization(image(inference), Mode::inference, {}, "norm").producer().type(),
            "batch_normalization_inference");
  EXPECT_EQ(variables(inference),
            "norm/scale f32[4] trainable\n"
            "norm/shift f32[4] trainable\n"
            "norm/running_mean f32[4]\n"
            "norm/running_variance f32[4]\n");
  verify(inference);
}

TEST(LayersTest, RunningStatisticsFollowTheBatches) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 2}, DType::f64});
  batch_normalization(x, Mode::training, {.momentum = 0.25}, "norm");
  test::Evaluator evaluator(graph);
  const auto set = [&](const char* path, double first, double second) {
    const Variable variable = graph.find_variable(path);
    evaluator.set(variable, test::Array(variable.info(), {first, second}));
  };
  set("norm/scale", 1, 1);
  set("norm/shift", 0, 0);
  set("norm/running_mean", 8, 0);
  set("norm/running_variance", 1, 2);
  // Means 3 and -1; variances divided by n - 1: (4 + 0 + 0 + 4) / 3 and 12 / 3.
  evaluator.set(x, test::Array(x.info(), {1, -4, 3, 0, 3, 0, 5, 0}));
  evaluator.step();
  const test::Array mean = evaluator.compute(graph.find_variable("norm/running_mean"));
  EXPECT_DOUBLE_EQ(mean.at(0), 0.75 * 8 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(mean.at(1), 0.25 * -1);
  const test::Array variance = evaluator.compute(graph.find_variable("norm/running_variance"));
  EXPECT_DOUBLE_EQ(variance.at(0), 0.75 * 1 + 0.25 * 8 / 3);
  EXPECT_DOUBLE_EQ(variance.at(1), 0.75 * 2 + 0.25 * 4);
}

TEST(LayersTest, GradientsThroughABatchsStatisticsFollowTheBatchSize) {
  const auto build = [](Graph& graph, std::int64_t samples) {
    const Tensor x = graph.input("x", {{samples, 3, 2}, DType::f32});
    const Tensor ones = ops::constant(graph, {{3}, DType::f32}, 1);
    const auto [y, mean, variance] = ops::batch_normalization_training(x, ones, ones);
    gradients(ops::add(ops::sum(ops::multiply(mean, variance)), ops::mean(y)), {x});
  };
  Graph graph;
  build(graph, 8);
  Graph expected;
  build(expected, 5);
  Graph got;
  with_batch_size(graph, 5, got);
  verify(got);
  EXPECT_EQ(dump(got), dump(expected));
}

TEST(LayersTest, DropoutIsLeftOutOfInference) {
  Graph graph;
  const Tensor x = image(graph);
  EXPECT_EQ(dropout(x, 0.5, Mode::inference), x);
  EXPECT_EQ(dropout(x, 0.5, Mode::training).producer().type(), "dropout");
}

TEST(LayersTest, TwoLayersOfOneNameHaveVariablesOfTheirOwn) {
  Graph graph;
  const Tensor x = conv2d(image(graph), 4, 1, {.has_bias = false});
  conv2d(x, 4, 1, {.has_bias = false});
  EXPECT_EQ(variables(graph),
            "conv2d/weight f32[4, 4, 1, 1] trainable decays\n"
            "conv2d_2/weight f32[4, 4, 1, 1] trainable decays\n");
}

TEST(LayersTest, ErrorsNameTheLayer) {
  Graph graph;
  const Tensor x = image(graph);
  const Tensor matrix = ops::flatten(x);
  const Tensor vector = graph.input("vector", {{4}, DType::f32});
  auto scope = graph.scope("net");
  EXPECT_EQ(error_text([&] { conv2d(matrix, 4, 1, {}, "conv1"); }),
            "[conv2d] net/conv1: x is f32[2, 256], it needs at least 4 dimensions and a dimension 1");
  EXPECT_EQ(error_text([&] { conv2d(x, 6, 3, {.groups = 4}, "conv1"); }),
            "[conv2d] net/conv1: 4 channels to 6 don't divide into 4 groups");
  EXPECT_EQ(
      error_text([&] { linear(vector, 4, {}, "fc"); }),
      "[linear] net/fc: x is f32[4], it needs at least 2 dimensions and a dimension -1; hint: make it a "
      "matrix of samples first: ops::flatten(x)");
  EXPECT_EQ(
      error_text([&] { batch_normalization(vector, Mode::training); }),
      "[batch_normalization] net/batch_normalization: x is f32[4], it needs at least 2 dimensions and a "
      "dimension 1");
  EXPECT_EQ(error_text([&] { bias(vector, {.axis = 1}); }),
            "[bias] net/bias: x is f32[4], it needs at least 1 dimensions and a dimension 1");
  EXPECT_TRUE(graph.variables().empty());
}

}  // namespace
}  // namespace purine::nn
