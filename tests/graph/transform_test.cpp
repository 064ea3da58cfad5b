#include "purine/graph/transform.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"
#include "tests/support/simple_contract.h"

namespace purine {
namespace {

using test::error_text;
using test::simple;

constexpr int whole = SplitRule::whole;
constexpr int partial = SplitRule::partial;

TensorInfo info(std::initializer_list<std::int64_t> extents) {
  return {Shape(extents), DType::f32};
}

/// A graph that uses what a copy must keep: scopes, numbered names, inputs after operators, a variable
/// without a next value, an operator without outputs, watched tensors.
void build(Graph& graph) {
  const Tensor x = graph.input("x", info({8, 3}));
  const Tensor early = graph.add(simple("noop", {info({8, 3})}), {x}).output();
  auto scope = graph.scope("net");
  const Variable weight = graph.variable("weight", info({5}), simple("zeros", {info({5})}));
  graph.variable("fixed", info({2}), simple("ones", {info({2})}), {.trainable = false, .decays = false});
  const Tensor y = graph.input("y", info({1}));
  graph.add(simple("sink", {}), {y, early});
  const Operator pair = graph.add(simple("pair", {info({5}), info({})}), {weight, early});
  graph.add(simple("pair", {info({5}), info({})}), {weight, early});
  graph.set_next(weight, pair.output(0));
  graph.watch(pair.output(1));
}

TEST(CopyGraphTest, KeepsEverything) {
  Graph from;
  build(from);
  Graph to;
  copy_graph(from, to);
  verify(to);
  EXPECT_EQ(dump(to), dump(from));
  EXPECT_EQ(json(to), json(from));
  EXPECT_EQ(to.find_variable("net/weight").index(), from.find_variable("net/weight").index());
  EXPECT_EQ(to.find_input("net/y").index(), from.find_input("net/y").index());
}

TEST(CopyGraphTest, NewNamesDontMeetOldOnes) {
  Graph from;
  build(from);
  Graph to;
  copy_graph(from, to);
  const Tensor x = to.find_input("x");
  EXPECT_EQ(to.add(simple("noop", {info({8, 3})}), {x}).path(), "noop_2");
  EXPECT_EQ(to.add(simple("noop", {info({8, 3})}), {x}, "net/pair").path(), "net/pair_3");
  auto scope = to.scope("net");
  EXPECT_EQ(to.current_scope(), "net_2");
}

TEST(CopyGraphTest, HooksReplaceContractsInfosAndLocations) {
  Graph from;
  build(from);
  Graph to;
  const Location second = Location::parse("cpu:1");
  CopyHooks hooks;
  hooks.contract = [](Operator op) {
    return op.path() == "noop" ? simple("other", {info({9, 3})}) : op.contract_pointer();
  };
  hooks.location = [&](Operator) { return second; };
  hooks.input = [](Tensor input) { return input.path() == "x" ? info({9, 3}) : input.info(); };
  hooks.initial = [](Variable) { return simple("ones", {info({5})}); };
  hooks.leaf_location = [&](Tensor) { return second; };
  copy_graph(from, to, hooks);
  verify(to);
  EXPECT_EQ(dump(to), R"(input x: f32[9, 3] @0/cpu:1
input net/y: f32[1] @0/cpu:1
variable net/weight: f32[5] = ones trainable decays next net/pair @0/cpu:1
variable net/fixed: f32[5] = ones @0/cpu:1
noop = other(x) -> f32[9, 3] @0/cpu:1
net/sink = sink(net/y, noop) -> @0/cpu:1
net/pair = pair(net/weight, noop) -> f32[5], f32[] @0/cpu:1
net/pair_2 = pair(net/weight, noop) -> f32[5], f32[] @0/cpu:1
watch net/pair:1
)");
}

TEST(CopyGraphTest, RefusesAFilledGraphAndOtherNumbersOfOutputs) {
  Graph from;
  build(from);
  EXPECT_EQ(error_text([&] { copy_graph(from, from); }),
            "[copy_graph] the graph that is copied into has vertices already; hint: pass a new Graph");
  Graph to;
  CopyHooks hooks;
  hooks.contract = [](Operator) { return simple("other", {info({5}), info({5})}); };
  EXPECT_EQ(error_text([&] { copy_graph(from, to, hooks); }),
            "[other] noop: has 2 outputs, the noop that it replaces has 1");
}

class BatchTest : public ::testing::Test {
 protected:
  /// An operator with one output and one rule.
  Tensor add(std::string type, std::initializer_list<Tensor> inputs, TensorInfo output, SplitRule rule) {
    return graph_.add(simple(std::move(type), {output}, {.rules = {std::move(rule)}}), inputs).output();
  }
  Variable weight(std::initializer_list<std::int64_t> extents) {
    return graph_.variable("weight", info(extents), simple("zeros", {info(extents)}));
  }
  std::string with(std::int64_t samples) {
    Graph out;
    with_batch_size(graph_, samples, out);
    verify(out);
    return dump(out);
  }

  Graph graph_;
};

TEST_F(BatchTest, FollowsTheBatchThroughForwardBackwardAndUpdate) {
  const Tensor x = graph_.input("x", info({8, 3}));
  const Variable w = weight({5, 3});
  const Tensor y = add("linear", {x, w}, info({8, 5}), {{0, whole}, {0}, 8});
  const Tensor folded = add("reshape", {y}, info({40, 1}), {{0}, {0}, 8});
  const Tensor activated = add("relu", {folded}, info({40, 1}), {{0}, {0}, 40});
  const Tensor loss = add("mean", {activated}, info({}), {{0}, {partial}, 40});
  const Tensor gradient = add("weight_gradient", {x, y}, info({5, 3}), {{0, 0}, {partial}, 8});
  graph_.set_next(w, add("update", {w, gradient}, info({5, 3}), {{0, 0}, {0}, 5}));
  graph_.watch(loss);
  EXPECT_EQ(batch_size(graph_), 8);
  EXPECT_EQ(with(8), dump(graph_));
  EXPECT_EQ(with(3), R"(input x: f32[3, 3] @0/cpu:0
variable weight: f32[5, 3] = zeros trainable decays next update @0/cpu:0
linear = linear(x, weight) -> f32[3, 5] @0/cpu:0
reshape = reshape(linear) -> f32[15, 1] @0/cpu:0
relu = relu(reshape) -> f32[15, 1] @0/cpu:0
mean = mean(relu) -> f32[] @0/cpu:0
weight_gradient = weight_gradient(x, linear) -> f32[5, 3] @0/cpu:0
update = update(weight, weight_gradient) -> f32[5, 3] @0/cpu:0
watch mean
)");
}

TEST_F(BatchTest, StartsAtDataSourcesAndGoesAnyDimension) {
  const Operator source = graph_.add(
      simple("source", {info({8, 3}), info({8})}, {.rules = {{{}, {0, 0}, 8}}, .brings_samples = true}), {});
  graph_.input("learning_rate", info({1}));
  add("transpose", {source.output(0)}, info({3, 8}), {{0}, {1}, 8});
  EXPECT_EQ(batch_size(graph_), 8);
  EXPECT_EQ(with(100), R"(input learning_rate: f32[1] @0/cpu:0
source = source() -> f32[100, 3], f32[100] @0/cpu:0
transpose = transpose(source) -> f32[3, 100] @0/cpu:0
)");
}

TEST_F(BatchTest, WhatAConsumerNeedsInBatchSizeFollows) {
  const Tensor x = graph_.input("x", info({8, 3}));
  const Tensor seed = graph_.add(simple("constant", {info({})}), {}).output();
  // Read by an operator that was visited before anybody wanted it in batch size.
  const Tensor spread = add("broadcast", {seed}, info({8, 3}), {{whole}, {0}, 8});
  const Tensor scaled = add("scale", {spread}, info({8, 3}), {{0}, {0}, 8});
  add("early", {scaled}, info({8}), {{0}, {0}, 8});
  const Tensor noise = add("random", {}, info({8, 3}), {{}, {0}, 8});
  const Tensor same_extent_but_no_batch = add("random", {}, info({8, 2}), {{}, {0}, 8});
  const Variable w = weight({8, 2});
  add("weight_noise", {w, same_extent_but_no_batch}, info({8, 2}), {{0, 0}, {0}, 8});
  add("add", {x, scaled, noise}, info({8, 3}), {{0, 0, 0}, {0}, 8});
  EXPECT_EQ(with(3), R"(input x: f32[3, 3] @0/cpu:0
variable weight: f32[8, 2] = zeros trainable decays @0/cpu:0
constant = constant() -> f32[] @0/cpu:0
broadcast = broadcast(constant) -> f32[3, 3] @0/cpu:0
scale = scale(broadcast) -> f32[3, 3] @0/cpu:0
early = early(scale) -> f32[3] @0/cpu:0
random = random() -> f32[3, 3] @0/cpu:0
random_2 = random() -> f32[8, 2] @0/cpu:0
weight_noise = weight_noise(weight, random_2) -> f32[8, 2] @0/cpu:0
add = add(x, scale, random) -> f32[3, 3] @0/cpu:0
)");
}

TEST_F(BatchTest, AnOperatorWithoutAFittingRuleIsNamed) {
  const Tensor x = graph_.input("x", info({8, 3}));
  auto scope = graph_.scope("net");
  const Variable w = weight({8, 3});
  graph_.add(
      simple("mix", {info({8, 3})}, {.rules = {{{1, 1}, {1}, 3}, {{0, 0}, {0}, 8}, {{1, whole}, {0}, 8}}}),
      {x, w});
  EXPECT_EQ(
      error_text([&] { with(3); }),
      "[with_batch_size] net/mix: no split rule of mix fits a batch of 3 samples instead of 8 (the batch "
      "lies in its inputs: x along dimension 0, net/weight whole); hint: build the graph anew for this "
      "number of samples");
}

TEST_F(BatchTest, AContractThatBreaksItsRuleIsNamed) {
  const Tensor x = graph_.input("x", info({8, 3}));
  auto scope = graph_.scope("net");
  graph_.add(simple("noop", {info({8, 3})}, {.rules = {{{0}, {0}, 8}}, .piece_adapts = false}), {x});
  EXPECT_EQ(error_text([&] { with(3); }),
            "[with_batch_size] net/noop: output 0 of the noop for 3 samples is f32[8, 3], its split rule "
            "promises f32[3, 3]");
}

TEST_F(BatchTest, EveryTensorHoldsWholeElementsPerSample) {
  const Tensor x = graph_.input("x", info({8, 3}));
  add("pool", {x}, info({4, 3}), {{0}, {0}, 8});
  EXPECT_EQ(
      error_text([&] { with(16); }),
      "[with_batch_size] pool: no split rule of pool fits a batch of 16 samples instead of 8 (the batch "
      "lies in its inputs: x along dimension 0); hint: build the graph anew for this number of samples");
}

TEST_F(BatchTest, NeedsABatchAndSamples) {
  EXPECT_EQ(
      error_text([&] { batch_size(graph_); }),
      "[batch_size] the graph has neither a data source nor an input with dimensions; hint: samples come "
      "from a source (purine/data) or from Graph::input");
  graph_.input("x", info({8, 3}));
  EXPECT_EQ(error_text([&] { with(0); }),
            "[with_batch_size] a batch has at least 1 sample, 0 were asked for");
}

TEST_F(BatchTest, SourcesAgree) {
  const auto source = [&](std::int64_t samples, std::string_view name) {
    graph_.add(simple("source", {info({samples, 3})}, {.brings_samples = true}), {}, name);
  };
  source(8, "first");
  source(8, "second");
  EXPECT_EQ(batch_size(graph_), 8);
  source(4, "third");
  EXPECT_EQ(error_text([&] { batch_size(graph_); }),
            "[batch_size] the data sources bring different numbers of samples: first is f32[8, 3], third is "
            "f32[4, 3]");
}

}  // namespace
}  // namespace purine
