#include "purine/parallel/partition.h"

#include <gtest/gtest.h>

#include "purine/gradient/gradient.h"
#include "purine/graph/transform.h"
#include "purine/nn/layers.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/dropout.h"
#include "purine/ops/loss.h"
#include "purine/ops/matmul.h"
#include "purine/ops/random.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/update.h"
#include "purine/parallel/plan.h"
#include "tests/parallel/compare.h"
#include "tests/parallel/devices.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::Array;
using test::assemble;
using test::devices;
using test::error_text;
using test::Evaluator;
using test::expect_same;

/// How many operators of a type there are.
std::int64_t count(Graph& graph, std::string_view type) {
  std::int64_t count = 0;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) count += graph.op(i).type() == type;
  return count;
}

TEST(PartitionTest, WeighsUnequalSharesBySamples) {
  // mean(w * x) over x = 1, 2, 3 at one location and 10 at the other: the gradient by w is 16 / 4, not the
  // mean of 2 and 10.
  Graph graph;
  const Tensor x = graph.input("x", {{4}, DType::f32});
  const Variable w = graph.variable("w", {{}, DType::f32}, ops::make_constant({{}, DType::f32}, 1));
  const Tensor loss = ops::mean(ops::multiply(x, w));
  const Tensor gradient = gradients(loss, {w})[0];
  graph.watch(loss);
  graph.watch(gradient);
  Mesh mesh(devices(2));
  mesh.set_shares("data", {3, 1});
  Specs specs(mesh);
  specs.split_samples(graph, "data");
  Partitioned parts = partition(graph, specs);
  verify(parts.graph());
  Evaluator evaluator(parts.graph());
  evaluator.set(parts.at(x), Array(x.info(), {1, 2, 3, 10}));
  const std::vector<Array> values = evaluator.compute({parts.at(loss), parts.at(gradient)});
  EXPECT_EQ(values[0].at(0), 4);
  EXPECT_EQ(values[1].at(0), 4);
  EXPECT_EQ(parts.pieces(x)[0].ranges[0], (Range{0, 3}));
  EXPECT_EQ(parts.pieces(x)[1].ranges[0], (Range{3, 4}));
}

/// A two-layer classifier with dropout and plain descent.
struct Classifier {
  Graph graph;
  Tensor loss;

  explicit Classifier(std::int64_t samples, DType dtype = DType::f64) {
    const Tensor x = graph.input("x", {{samples, 6}, dtype});
    const Tensor label = graph.input("label", {{samples}, DType::i64});
    const Tensor hidden =
        nn::dropout(ops::relu(nn::linear(x, 7, {.bias = nn::constant(0.1)}, "fc1")), 0.3, nn::Mode::training);
    const Tensor logits = nn::linear(hidden, 5, {}, "fc2");
    loss = ops::softmax_cross_entropy(logits, label, "loss");
    const Tensor rate = ops::constant(graph, {{}, dtype}, 0.2, "rate");
    const std::vector<Variable> variables = graph.variables();
    const std::vector<Tensor> made = gradients(loss, std::vector<Tensor>(variables.begin(), variables.end()));
    for (std::size_t i = 0; i < variables.size(); ++i) {
      graph.set_next(variables[i], ops::sgd_update(variables[i], made[i], rate));
    }
    graph.watch(loss);
    graph.watch(ops::accuracy(logits, label));
  }

  Variable variable(const char* path) { return graph.find_variable(path); }
};

TEST(PartitionTest, OfSamplesEqualsOneLocationWhateverTheirNumber) {
  for (const std::int64_t samples : {1, 2, 5, 8}) {
    for (const int locations : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(samples) + " over " + std::to_string(locations));
      Classifier net(samples);
      Specs specs{Mesh(devices(locations))};
      specs.split_samples(net.graph, "data");
      Partitioned parts = partition(net.graph, specs);
      expect_same(net.graph, parts, 3, 1e-13, 5);
      EXPECT_EQ(count(parts.graph(), "linear"), 2 * std::min<std::int64_t>(samples, locations));
    }
  }
}

TEST(PartitionTest, OfWeightsEqualsOneLocation) {
  for (const int locations : {2, 3, 8}) {
    for (const int first : {0, 1}) {
      for (const int second : {0, 1}) {
        SCOPED_TRACE(std::to_string(locations) + " " + std::to_string(first) + std::to_string(second));
        Classifier net(4);
        Specs specs{Mesh(devices(locations), "model")};
        specs.set(net.variable("fc1/weight"), "model", split(first));
        specs.set(net.variable("fc2/weight"), "model", split(second));
        if (first == 0) specs.set(net.variable("fc1/bias"), "model", split(0));
        Partitioned parts = partition(net.graph, specs);
        expect_same(net.graph, parts, 2, 1e-13, 5);
        EXPECT_EQ(parts.spec(net.variable("fc1/weight"))[0].dimension, first);
      }
    }
  }
}

TEST(PartitionTest, SendsNothingBetweenAPairOfLayersDividedByOutputAndByInput) {
  Classifier net(4);
  Specs specs{Mesh(devices(2), "model")};
  specs.set(net.variable("fc1/weight"), "model", split(0)).set(net.variable("fc1/bias"), "model", split(0));
  specs.set(net.variable("fc2/weight"), "model", split(1));
  Partitioned parts = partition(net.graph, specs);
  const std::string text = dump(parts.graph());
  for (const char* path : {"all_gather/relu", "all_gather/fc1", "all_gather/dropout", "all_to_all/"}) {
    EXPECT_EQ(text.find(path), std::string::npos) << path << "\n" << text;
  }
  EXPECT_NE(text.find("reduce_scatter/fc2/linear/"), std::string::npos) << text;
}

TEST(PartitionTest, SendsWhatTheNextWayOfLyingLacks) {
  struct Case {
    const char* scope;
    Placement from;  // of the input, and of a weight that it is multiplied by
    Placement to;    // of the product, or of the input where there is none
    bool multiplied;
    std::int64_t elements;  // sent, of 24 over two locations
  };
  const std::vector<Case> cases = {
      {"all_gather", split(0), replicated(), false, 12 + 12},
      {"all_to_all", split(0), split(1), false, 6 + 6},
      {"slice", replicated(), split(1), false, 0},
      {"all_reduce", split(1), replicated(), true, 2 * (12 + 12)},
      {"reduce_scatter", split(1), split(0), true, 12 + 12},
  };
  for (const Case& lies : cases) {
    SCOPED_TRACE(lies.scope);
    Graph graph;
    const Tensor x = graph.input("x", {{4, 6}, DType::f64});
    Specs specs{Mesh(devices(2))};
    specs.set(x, "data", lies.from);
    Tensor y = ops::relu(x);
    if (lies.multiplied) {
      const TensorInfo info{{6, 6}, DType::f64};
      const Variable w = graph.variable("w", info, ops::make_random_normal(info, 0, 1));
      specs.set(w, "data", lies.from);
      y = ops::linear(x, w);
    }
    specs.set(y, "data", lies.to);
    Partitioned parts = partition(graph, specs);
    verify(parts.graph());
    std::int64_t sent = 0;
    bool found = false;
    for (std::uint32_t i = 0; i < parts.graph().operator_count(); ++i) {
      const Operator op = parts.graph().op(i);
      if (!op.path().starts_with(lies.scope + std::string("/"))) continue;
      found = true;
      if (op.type() == "copy" && op.input(0).location() != op.location()) {
        sent += op.output().shape().elements();
      }
    }
    EXPECT_TRUE(found) << dump(parts.graph());
    EXPECT_EQ(sent, lies.elements) << dump(parts.graph());
    Evaluator one(graph);
    Evaluator two(parts.graph());
    const Array values = test::input_values(x, 0);
    one.set(x, values);
    two.set(parts.at(x), values);
    EXPECT_LE(test::largest_difference(assemble(two, parts, y), one.compute(y)), 1e-14);
  }
}

TEST(PartitionTest, OverTwoAxesEqualsOneLocation) {
  for (const std::int64_t samples : {4, 5, 3}) {
    Classifier net(samples);
    Specs specs{Mesh("data=2,model=3", devices(6))};
    specs.split_samples(net.graph, "data");
    specs.set(net.variable("fc1/weight"), "model", split(0)).set(net.variable("fc1/bias"), "model", split(0));
    specs.set(net.variable("fc2/weight"), "model", split(1));
    Partitioned parts = partition(net.graph, specs);
    expect_same(net.graph, parts, 2, 1e-13, 5);
  }
}

TEST(PartitionTest, OfOneDimensionOverTwoAxesIsNested) {
  for (const std::int64_t samples : {8, 5, 3, 1}) {
    Classifier net(samples);
    Specs specs{Mesh("host=2,data=2", devices(4))};
    specs.split_samples(net.graph, "host").split_samples(net.graph, "data");
    Partitioned parts = partition(net.graph, specs);
    expect_same(net.graph, parts, 2, 1e-13, 5);
    if (samples == 5) {
      std::vector<Range> ranges;
      for (const auto& piece : parts.pieces(net.graph.find_input("x"))) ranges.push_back(piece.ranges[0]);
      EXPECT_EQ(ranges, (std::vector<Range>{{0, 2}, {2, 3}, {3, 4}, {4, 5}}));
    }
  }
}

TEST(PartitionTest, OfAVariableToOneLocationKeepsAndUpdatesItThere) {
  Classifier net(5);
  Specs specs{Mesh(devices(3))};
  specs.split_samples(net.graph, "data");
  specs.set(net.variable("fc1/weight"), "data", at_coordinate(2));
  Partitioned parts = partition(net.graph, specs);
  expect_same(net.graph, parts, 2, 1e-13, 5);
  const auto pieces = parts.pieces(net.variable("fc1/weight"));
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].tensor.path(), "@2/fc1/weight");
  EXPECT_EQ(pieces[0].tensor.location().text(), "0/emu:2");
  const Tensor next = parts.graph().as_variable(pieces[0].tensor).next();
  EXPECT_EQ(next.producer().type(), "sgd_update");
}

TEST(PartitionTest, KeepsThePathOfAWholeVariableAtTheFirstLocation) {
  Classifier net(4);
  Specs specs{Mesh(devices(2))};
  specs.split_samples(net.graph, "data");
  Partitioned parts = partition(net.graph, specs);
  EXPECT_EQ(parts.at(net.variable("fc1/weight")).path(), "fc1/weight");
  EXPECT_EQ(parts.pieces(net.variable("fc1/weight"))[1].tensor.path(), "@1/fc1/weight");
  EXPECT_EQ(logical_path("@1/fc1/weight"), "fc1/weight");
  EXPECT_EQ(logical_path("fc1/weight"), "fc1/weight");
  EXPECT_EQ(logical_path("@12"), "@12");
  EXPECT_EQ(parts.at(net.loss).location().text(), "0/emu:0");
}

TEST(PartitionTest, ForAnotherBatchSizeKeepsVariablesAndWatchedTensorsInOrder) {
  Classifier net(5);
  Specs specs{Mesh(devices(2))};
  specs.split_samples(net.graph, "data");
  Partitioned parts = partition(net.graph, specs);
  EXPECT_EQ(batch_size(parts.graph()), 5);
  Graph smaller;
  with_batch_size(parts.graph(), 1, smaller);
  verify(smaller);
  const auto paths = [](const auto& tensors) {
    std::vector<std::string> list;
    for (const Tensor tensor : tensors) list.push_back(tensor.path());
    return list;
  };
  EXPECT_EQ(paths(smaller.variables()), paths(parts.graph().variables()));
  EXPECT_EQ(paths(smaller.inputs()), paths(parts.graph().inputs()));
  ASSERT_EQ(smaller.watched().size(), 2U);
  Classifier one(1);
  Evaluator left(one.graph);
  Evaluator right(smaller);
  for (const Tensor input : one.graph.inputs()) {
    left.set(input, test::input_values(input, 5));
    right.set(smaller.find_input(input.path()), test::input_values(input, 5));
  }
  EXPECT_NEAR(left.compute(one.loss).at(0), right.compute(smaller.watched()[0]).at(0), 1e-14);
}

TEST(PartitionTest, SaysWhatIsWrong) {
  Classifier net(4);
  const Mesh mesh(devices(2));
  EXPECT_EQ(error_text([&] { Specs(mesh).set(net.variable("fc1/bias"), "data", split(1)); }),
            "[parallel] fc1/bias: is f64[7], it cannot be split 1 over data=2");
  EXPECT_EQ(error_text([&] { Specs(mesh).set(net.variable("fc1/bias"), "data", split(0, 2)); }),
            "[parallel] fc1/bias: is f64[7], its dimension 0 doesn't consist of 2 units");
  EXPECT_EQ(error_text([&] { Specs(mesh).set(net.loss, "data", partial()); }),
            "[parallel] loss: is said to be partial; replicated or split can be said");
  EXPECT_EQ(
      error_text([&] {
        Specs grid(Mesh("a=1,b=2", devices(2)));
        grid.set(net.graph.find_input("x"), "a", split(0, 2)).set(net.graph.find_input("x"), "b", split(0));
      }),
      "[parallel] x: its dimension 0 can't be split by different units over a and b");
  Specs specs(mesh);
  specs.split_samples(net.graph, "data");
  Partitioned parts = partition(net.graph, specs);
  const Tensor logits = net.loss.producer().input(0);
  EXPECT_EQ(error_text([&] { parts.at(logits); }),
            "[partition] fc2/linear: is whole nowhere: data: split 0 by 4 units; hint: watch it before the "
            "graph is "
            "divided, or look at its pieces");
  EXPECT_EQ(error_text([&] { partition(parts.graph(), Specs(mesh)); }),
            "[partition] @1/fc1/weight: is a piece of a graph that is divided already");
}

}  // namespace
}  // namespace purine::parallel
