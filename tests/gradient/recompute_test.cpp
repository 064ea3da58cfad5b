#include "purine/gradient/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/graph/transform.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using test::error_text;

/// Two convolutions with normalisation and rectifier, pooling, dropout and a classifier.
struct RecomputedNetwork {
  Graph graph;
  Tensor loss;

  explicit RecomputedNetwork(std::int64_t batch = 4) {
    Tensor x = graph.input("image", {{batch, 1, 8, 8}, DType::f32});
    const Tensor label = graph.input("label", {{batch}, DType::i64});
    {
      auto scope = graph.scope("net");
      for (const char* name : {"first", "second"}) {
        auto block = graph.scope(name);
        x = nn::conv2d(x, 32, {3, 3}, {.padding = {1, 1}, .has_bias = false});
        x = ops::relu(nn::batch_normalization(x, nn::Mode::training));
      }
      x = ops::max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}});
      x = ops::reshape(x, {batch, 512});
      x = ops::relu(nn::linear(x, 64, {}, "hidden"));
      x = nn::linear(nn::dropout(x, 0.5, nn::Mode::training), 3, {}, "classes");
    }
    loss = ops::softmax_cross_entropy(x, label);
    optim::momentum(loss, {.learning_rate = 0.1, .momentum = 0.9});
    graph.watch(loss);
  }

  std::vector<std::string> all() {
    std::vector<std::string> paths;
    for (const Recomputation& way : recomputations(graph)) {
      for (const Operator op : way.operators) paths.push_back(op.path());
    }
    return paths;
  }
};

std::vector<std::string> operators_below(Graph& graph, const std::string& scope) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const std::string path = graph.op(i).path();
    if (path.starts_with(scope)) paths.push_back(path);
  }
  return paths;
}

/// Evaluates a graph on images and labels that follow from their numbers.
test::Evaluator evaluator(Graph& graph) {
  test::Evaluator values(graph);
  const Tensor image = graph.find_input("image");
  std::vector<double> pixels;
  for (std::int64_t i = 0; i < image.shape().elements(); ++i)
    pixels.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
  std::vector<double> labels;
  for (std::int64_t i = 0; i < image.shape()[0]; ++i) labels.push_back(static_cast<double>(i % 3));
  values.set(image, test::Array(image.info(), pixels));
  values.set(graph.find_input("label"), test::Array(graph.find_input("label").info(), labels));
  return values;
}

TEST(RecomputeTest, NormalisationAndRectifierRunAgainFromTheConvolutionsResult) {
  RecomputedNetwork network;
  Graph made;
  const std::vector<Tensor> tensors = recompute(
      network.graph,
      std::vector<std::string>{"net/first/batch_normalization/batch_normalization", "net/first/relu"}, made);
  verify(made);
  ASSERT_EQ(tensors.size(), network.graph.tensor_count());
  EXPECT_EQ(tensors[network.loss.index()].path(), network.loss.path());
  EXPECT_EQ(made.watched().at(0), tensors[network.loss.index()]);
  EXPECT_EQ(operators_below(made, "@again/"),
            (std::vector<std::string>{"@again/net/first/batch_normalization/after",
                                      "@again/net/first/batch_normalization/batch_normalization",
                                      "@again/net/first/relu"}));
  // What runs again waits for the gradient that its first reader reads, and is read by the whole backward
  // pass.
  for (std::uint32_t i = 0; i < made.operator_count(); ++i) {
    const Operator op = made.op(i);
    if (op.path() == "@again/net/first/batch_normalization/after") {
      EXPECT_EQ(op.input(0).path(), "net/first/conv2d/conv2d");
      EXPECT_TRUE(is_gradient(op.input(1).producer()));
    }
    if (!is_gradient(op)) continue;
    for (const Tensor input : op.inputs()) {
      EXPECT_NE(input.path(), "net/first/relu") << op.path();
      EXPECT_NE(input.path(), "net/first/batch_normalization/batch_normalization:1") << op.path();
    }
  }
}

TEST(RecomputeTest, ValuesAreTheSameToTheBit) {
  RecomputedNetwork network;
  Graph made;
  const std::vector<Tensor> tensors = recompute(network.graph, network.all(), made);
  verify(made);
  EXPECT_FALSE(operators_below(made, "@again/net/dropout").empty());
  test::Evaluator before = evaluator(network.graph);
  test::Evaluator after = evaluator(made);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(before.step({network.loss}), after.step({tensors[network.loss.index()]})) << step;
  }
  std::vector<Tensor> variables;
  std::vector<Tensor> same;
  for (const Variable variable : network.graph.variables()) {
    variables.push_back(variable);
    same.push_back(made.find_variable(variable.path()));
  }
  EXPECT_EQ(before.compute(variables), after.compute(same));
}

TEST(RecomputeTest, SavesWhatLiesNowhereElse) {
  RecomputedNetwork network;
  std::vector<std::string> saved;
  for (const Recomputation& way : recomputations(network.graph)) {
    saved.push_back(way.operators.back().path());
    EXPECT_GT(way.bytes, 0U);
    EXPECT_GE(way.moved, static_cast<double>(way.bytes));
  }
  const auto has = [&](const std::string& path) {
    return std::find(saved.begin(), saved.end(), path) != saved.end();
  };
  EXPECT_TRUE(has("net/first/relu"));
  EXPECT_TRUE(has("net/second/relu"));
  EXPECT_TRUE(has("net/reshape")) << "pooling, and the view of it that is read";
  EXPECT_FALSE(has("net/relu")) << "the matrix product that it needs moves more than is saved";
  EXPECT_FALSE(has("net/second/conv2d/conv2d"));
}

TEST(RecomputeTest, FollowsTheBatch) {
  RecomputedNetwork network;
  Graph made;
  recompute(network.graph, network.all(), made);
  EXPECT_EQ(batch_size(made), 4);
  Graph shorter;
  with_batch_size(made, 2, shorter);
  verify(shorter);
  EXPECT_EQ(batch_size(shorter), 2);
  Graph shortest;
  with_batch_size(shorter, 1, shortest);
  verify(shortest);
  Graph expected;
  with_batch_size(network.graph, 1, expected);
  EXPECT_EQ(operators_below(shortest, "@again/"), operators_below(made, "@again/"));
  EXPECT_EQ(evaluator(shortest).step({shortest.watched().at(0)}),
            evaluator(expected).step({expected.watched().at(0)}));
}

TEST(RecomputeTest, OfAGraphMadeSoKeepsPathsApart) {
  RecomputedNetwork network;
  Graph once;
  recompute(network.graph, std::vector<std::string>{"net/dropout"}, once);
  Graph twice;
  recompute(once, std::vector<std::string>{"net/max_pool2d", "net/reshape"}, twice);
  verify(twice);
  EXPECT_FALSE(operators_below(twice, "@again/").empty());
  EXPECT_FALSE(operators_below(twice, "@again2/").empty());
  EXPECT_EQ(evaluator(twice).step({twice.watched().at(0)}), evaluator(network.graph).step({network.loss}));
}

TEST(RecomputeTest, NothingIsLeftToDoWithoutGradients) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 8}, DType::f32});
  graph.watch(ops::sum(ops::relu(x)));
  EXPECT_TRUE(recomputations(graph).empty());
}

TEST(RecomputeTest, RefusesWhatCannotRunAgain) {
  RecomputedNetwork network;
  const auto with = [&](const std::string& path) {
    return error_text([&] {
      Graph made;
      recompute(network.graph, std::vector<std::string>{path}, made);
    });
  };
  EXPECT_EQ(with("net/nothing"), "[recompute] net/nothing: the graph has no such operator");
  EXPECT_EQ(with("gradient/net/first/relu_gradient"),
            "[recompute] gradient/net/first/relu_gradient: a relu_gradient here can't run again; hint: "
            "operators of the forward pass that read more than variables can");
  EXPECT_EQ(error_text([&] { recompute(network.graph, {}, network.graph); }),
            "[recompute] the graph that is made has vertices already; hint: pass a new Graph");
}

}  // namespace
}  // namespace purine
