#include "purine/parallel/schemes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "tests/parallel/compare.h"
#include "tests/parallel/devices.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::devices;
using test::error_text;
using test::expect_same;

/// LeNet's shape, small: two convolutions with pooling, two fully connected layers, momentum.
struct SmallLeNet {
  Graph graph;
  Tensor loss;

  explicit SmallLeNet(std::int64_t samples, DType dtype = DType::f64) {
    Tensor x = graph.input("image", {{samples, 2, 12, 12}, dtype});
    const Tensor label = graph.input("label", {{samples}, DType::i64});
    x = ops::max_pool2d(nn::conv2d(x, 6, 3, {}, "conv1"), {}, "pool1");
    x = ops::relu(ops::max_pool2d(nn::conv2d(x, 5, 2, {}, "conv2"), {}, "pool2"));
    x = ops::relu(nn::linear(ops::flatten(x), 9, {}, "fc1"));
    x = nn::linear(x, 7, {}, "fc2");
    loss = ops::softmax_cross_entropy(x, label, "loss");
    graph.watch(ops::accuracy(x, label));
    optim::momentum(loss, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  }
};

using SchemeOfCount = std::function<Partitioned(Graph&, int count)>;

const std::map<std::string, SchemeOfCount>& schemes() {
  static const std::map<std::string, SchemeOfCount> all = {
      {"data", [](Graph& g, int n) { return data_parallel(g, Mesh(devices(n))); }},
      {"data_ring",
       [](Graph& g, int n) {
         return data_parallel(g, Mesh(devices(n)), {.partition = {.all_reduce = ring_all_reduce}});
       }},
      {"data_central",
       [](Graph& g, int n) { return data_parallel(g, Mesh(devices(n)), {.update = UpdateAt::one_each}); }},
      {"data_sharded",
       [](Graph& g, int n) { return data_parallel(g, Mesh(devices(n)), {.update = UpdateAt::shards}); }},
      {"data_chunks",
       [](Graph& g, int n) {
         return data_parallel(
             g, Mesh(devices(n)),
             {.partition = {.all_reduce = sharded_all_reduce, .chunk_bytes = 256, .bucket_bytes = 0}});
       }},
      {"data_buckets",
       [](Graph& g, int n) {
         return data_parallel(g, Mesh(devices(n)),
                              {.partition = {.all_reduce = tree_all_reduce, .bucket_bytes = 2000}});
       }},
      {"data_shares",
       [](Graph& g, int n) {
         Mesh mesh(devices(n));
         std::vector<std::int64_t> shares(static_cast<std::size_t>(n), 1);
         shares.back() = 3;
         return data_parallel(g, mesh.set_shares("data", shares));
       }},
      {"tensor", [](Graph& g, int n) { return tensor_parallel(g, Mesh(devices(n), "model")); }},
      {"tensor_convolutions",
       [](Graph& g, int n) {
         return tensor_parallel(g, Mesh(devices(n), "model"), {.output = {"conv1"}, .input = {"conv2"}});
       }},
      {"tensor_convolutions_swapped",
       [](Graph& g, int n) {
         return tensor_parallel(g, Mesh(devices(n), "model"),
                                {.output = {"conv2", "fc1"}, .input = {"conv1"}});
       }},
      {"hybrid", [](Graph& g, int n) { return hybrid(g, Mesh(devices(n))); }},
      {"hybrid_one_layer", [](Graph& g, int n) { return hybrid(g, Mesh(devices(n)), {.input = {"fc1"}}); }},
      {"hybrid_two_axes",
       [](Graph& g, int n) {
         return hybrid(g, Mesh("data=2,model=" + std::to_string(n), devices(2 * n)),
                       {.layers_axis = "model"});
       }},
  };
  return all;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& [name, scheme] : schemes()) names.push_back(name);
  return names;
}

class SchemeTest : public testing::TestWithParam<std::string> {};

TEST_P(SchemeTest, EqualsOneLocation) {
  for (const int count : {2, 3, 4}) {
    for (const std::int64_t samples : {8, 5}) {
      SCOPED_TRACE(std::to_string(samples) + " samples over " + std::to_string(count));
      SmallLeNet net(samples);
      Partitioned parts = schemes().at(GetParam())(net.graph, count);
      expect_same(net.graph, parts, 2, 1e-12, 7);
    }
  }
}

TEST_P(SchemeTest, DiffersInSinglePrecisionByItsRoundingAlone) {
  for (const int count : {2, 3, 4}) {
    SmallLeNet net(6, DType::f32);
    Partitioned parts = schemes().at(GetParam())(net.graph, count);
    expect_same(net.graph, parts, 1, 1e-6, 7);
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, SchemeTest, testing::ValuesIn(scheme_names()),
                         [](const auto& test) { return test.param; });

/// The largest difference of a learnt variable after a step of plain descent, by its path.
std::map<std::string, double> differences_after_a_step(const PartitionOptions& options, UpdateAt update,
                                                       double* largest_gradient) {
  const auto build = [](Graph& graph) {
    const Tensor x = graph.input("x", {{8, 12}, DType::f64});
    const Tensor label = graph.input("label", {{8}, DType::i64});
    const Tensor hidden = ops::relu(nn::linear(x, 20, {}, "fc1"));
    optim::sgd(ops::softmax_cross_entropy(nn::linear(hidden, 7, {}, "fc2"), label, "loss"),
               {.learning_rate = 1});
  };
  Graph graph;
  build(graph);
  Partitioned parts = data_parallel(graph, Mesh(devices(4)), {.update = update, .partition = options});
  test::Evaluator one(graph);
  test::Evaluator many(parts.graph());
  for (const Tensor input : graph.inputs()) {
    const test::Array values = test::input_values(input, 7);
    one.set(input, values);
    many.set(parts.at(input), values);
  }
  std::map<std::string, test::Array> before;
  for (const Variable variable : graph.variables()) before.emplace(variable.path(), one.compute(variable));
  one.step();
  many.step();
  std::map<std::string, double> differences;
  for (const Variable variable : graph.variables()) {
    const test::Array expected = one.compute(variable);
    *largest_gradient =
        std::max(*largest_gradient, test::largest_difference(expected, before.at(variable.path())));
    differences[variable.path()] = test::largest_difference(test::assemble(many, parts, variable), expected);
  }
  return differences;
}

TEST(SchemesTest, GradientsThatAreNarrowOnTheWireAreOffByTheirRounding) {
  double gradient = 0;
  for (const auto& [path, difference] : differences_after_a_step({}, UpdateAt::everywhere, &gradient)) {
    EXPECT_LE(difference, 1e-14) << path;
  }
  EXPECT_GT(gradient, 0.01);
  for (const UpdateAt update : {UpdateAt::everywhere, UpdateAt::shards, UpdateAt::one_each}) {
    for (const auto format : {ops::NarrowFormat::f16, ops::NarrowFormat::bf16}) {
      const double u = format == ops::NarrowFormat::f16 ? 0x1p-11 : 0x1p-8;
      // Each sample adds at most 1/8 times a hidden value, or error, below 2 to an element of a gradient, so
      // that the parts' sizes add up to at most 2; the sum is rounded once more. A step at rate 1 shows both.
      const double bound = u * 2 + u * (2 + 2 * u);
      double largest = 0;
      for (const auto& [path, difference] :
           differences_after_a_step({.gradient_wire = format}, update, &gradient)) {
        EXPECT_LE(difference, bound) << path;
        largest = std::max(largest, difference);
      }
      EXPECT_GT(largest, u * 1e-3);
    }
  }
}

TEST(SchemesTest, SayThatAnAllReduceSendsAsItDoes) {
  SmallLeNet net(4);
  EXPECT_EQ(
      error_text([&] {
        data_parallel(
            net.graph, Mesh(devices(2)),
            {.partition = {.all_reduce = ring_all_reduce, .gradient_wire = ops::NarrowFormat::f16}});
      }),
      "[partition] an all-reduce is given, and how gradients are sent; hint: narrow_all_reduce makes an "
      "all-reduce that sends narrow numbers");
}

TEST(SchemesTest, LossesAndActivationsStayAsTheyAreOnTheWire) {
  SmallLeNet net(8, DType::f32);
  Partitioned parts =
      data_parallel(net.graph, Mesh(devices(2)), {.partition = {.gradient_wire = ops::NarrowFormat::f16}});
  int narrow = 0;
  for (std::uint32_t i = 0; i < parts.graph().operator_count(); ++i) {
    const Operator op = parts.graph().op(i);
    if (op.type() == "narrow") ++narrow;
    if (op.type() != "copy" || !op.path().starts_with("all_reduce/loss")) continue;
    EXPECT_EQ(op.output().dtype(), DType::f32);
  }
  EXPECT_GT(narrow, 0);
}

std::size_t state_bytes(Graph& graph, Location location) {
  std::size_t bytes = 0;
  for (const Variable variable : graph.variables()) {
    if (!variable.trainable() && variable.location() == location) bytes += variable.info().bytes();
  }
  return bytes;
}

TEST(SchemesTest, ShardedUpdateDividesTheOptimizersState) {
  SmallLeNet net(8);
  const std::size_t whole = state_bytes(net.graph, {});
  Partitioned parts = data_parallel(net.graph, Mesh(devices(4)), {.update = UpdateAt::shards});
  for (const Location& location : parts.mesh().locations()) {
    EXPECT_NEAR(static_cast<double>(state_bytes(parts.graph(), location)), static_cast<double>(whole) / 4,
                static_cast<double>(whole) * 0.1);
  }
}

TEST(SchemesTest, CentralUpdateDealsVariablesOutBySize) {
  SmallLeNet net(8);
  const std::size_t whole = state_bytes(net.graph, {});
  Partitioned parts = data_parallel(net.graph, Mesh(devices(2)), {.update = UpdateAt::one_each});
  std::size_t sum = 0;
  for (const Location& location : parts.mesh().locations()) {
    const std::size_t bytes = state_bytes(parts.graph(), location);
    EXPECT_GT(bytes, whole / 5);
    sum += bytes;
  }
  EXPECT_EQ(sum, whole);
}

TEST(SchemesTest, AHybridDividesTheLayersThatAreNamed) {
  SmallLeNet net(4);
  const Partitioned parts = hybrid(net.graph, Mesh(devices(2)), {.output = {"fc2"}});
  const auto pieces = [&](const char* variable) {
    std::vector<std::int64_t> elements;
    for (const Partitioned::Piece& piece : parts.pieces(net.graph.find_variable(variable))) {
      elements.push_back(piece.tensor.shape().elements());
    }
    return elements;
  };
  EXPECT_EQ(pieces("fc2/weight"), (std::vector<std::int64_t>{4 * 9, 3 * 9}));
  EXPECT_EQ(pieces("fc1/weight"), (std::vector<std::int64_t>{9 * 20, 9 * 20})) << "at both, whole";
}

TEST(SchemesTest, FindFullyConnectedLayersInOrder) {
  SmallLeNet net(2);
  EXPECT_EQ(fully_connected_layers(net.graph), (std::vector<std::string>{"fc1", "fc2"}));
}

TEST(SchemesTest, SayWhichLayerIsMeant) {
  SmallLeNet net(2);
  EXPECT_EQ(error_text([&] { tensor_parallel(net.graph, Mesh(devices(2), "model"), {.output = {"conv3"}}); }),
            "[parallel] there is no layer 'conv3' with a weight; hint: did you mean 'conv1'?");
}

}  // namespace
}  // namespace purine::parallel
