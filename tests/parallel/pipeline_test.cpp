#include "purine/parallel/pipeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "purine/graph/transform.h"
#include "purine/nn/layers.h"
#include "purine/ops/binary.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/ops/softmax.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/stages.h"
#include "purine/session/runtime.h"
#include "tests/parallel/compare.h"
#include "tests/parallel/devices.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::error_text;
using test::expect_same;
using test::stages;

/// Convolutions, a connection around a layer, dropout and fully connected layers.
struct ResidualNetwork {
  Graph graph;
  Tensor loss;

  explicit ResidualNetwork(std::int64_t samples, DType dtype = DType::f64, double clip_norm = 0) {
    Tensor x = graph.input("image", {{samples, 2, 10, 10}, dtype});
    const Tensor label = graph.input("label", {{samples}, DType::i64});
    x = ops::relu(nn::conv2d(x, 4, 3, {.padding = 1}, "conv1"));
    x = ops::relu(ops::add(x, nn::conv2d(x, 4, 3, {.padding = 1}, "conv2")));
    x = ops::relu(ops::max_pool2d(x, {}, "pool"));
    x = ops::relu(nn::linear(ops::flatten(x), 9, {}, "fc1"));
    x = nn::dropout(x, 0.25, nn::Mode::training);
    x = nn::linear(x, 7, {}, "fc2");
    loss = ops::softmax_cross_entropy(x, label, "loss");
    graph.watch(ops::accuracy(x, label));
    optim::momentum(loss,
                    {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = clip_norm});
  }
};

TEST(PipelineTest, EqualsOneLocation) {
  for (const int count : {1, 2, 3, 4}) {
    for (const int micro_batches : {1, 3, 4}) {
      for (const std::int64_t samples : {10, 3, 1}) {
        SCOPED_TRACE(std::to_string(samples) + " samples in " + std::to_string(micro_batches) +
                     " micro-batches through " + std::to_string(count) + " stages");
        ResidualNetwork net(samples);
        Partitioned parts = pipeline(net.graph, stages(count), {.micro_batches = micro_batches});
        expect_same(net.graph, parts, 2, 1e-12, 7);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PipelineTest, MayBeCutAtAnyEdge) {
  std::vector<std::uint32_t> forward;
  {
    ResidualNetwork net(5);
    const Stages all = assign_stages(net.graph, 1, estimated_cost);
    for (std::uint32_t i = 0; i < all.phases.size(); ++i) {
      if (all.phases[i] == Phase::forward) forward.push_back(i);
    }
  }
  ASSERT_GT(forward.size(), 15U);
  for (std::size_t i = 0; i + 1 < forward.size(); ++i) {
    ResidualNetwork net(5);
    SCOPED_TRACE("behind " + net.graph.op(forward[i]).path());
    // Nothing else costs anything, so that the cut is between these two.
    const auto cost = [&](Operator op) {
      return op.index() == forward[i] || op.index() == forward[i + 1] ? 1.0 : 0.0;
    };
    const Stages cut = assign_stages(net.graph, 2, cost);
    EXPECT_EQ(cut.operators[forward[i]], 0);
    EXPECT_EQ(cut.operators[forward[i + 1]], 1);
    Partitioned parts = pipeline(net.graph, stages(2), {.micro_batches = 2, .cost = cost});
    expect_same(net.graph, parts, 1, 1e-12, 7);
  }
}

TEST(PipelineTest, DiffersInSinglePrecisionByItsRoundingAlone) {
  for (const int count : {2, 3, 4}) {
    ResidualNetwork net(10, DType::f32);
    Partitioned parts = pipeline(net.graph, stages(count), {.micro_batches = 4});
    expect_same(net.graph, parts, 1, 1e-6, 7);
  }
}

TEST(PipelineTest, ClipsByTheNormOfAllStages) {
  ResidualNetwork net(6, DType::f64, 0.05);
  Partitioned parts = pipeline(net.graph, stages(3), {.micro_batches = 4});
  expect_same(net.graph, parts, 2, 1e-12, 7);
}

TEST(PipelineTest, DividesTheSamplesOfMicroBatches) {
  for (const UpdateAt update : {UpdateAt::everywhere, UpdateAt::shards, UpdateAt::one_each}) {
    for (const std::int64_t samples : {16, 10, 3, 1}) {
      SCOPED_TRACE(std::to_string(samples) + " samples");
      ResidualNetwork net(samples);
      Mesh mesh("data=2,stage=2", parse_devices("emu:0-3"));
      mesh.set_shares("data", {1, 2});
      Partitioned parts = pipeline(net.graph, mesh, {.micro_batches = 3, .update = update});
      expect_same(net.graph, parts, 2, 1e-12, 7);
      if (HasFailure()) return;
    }
  }
}

TEST(PipelineTest, IsMadeForOtherNumbersOfSamples) {
  ResidualNetwork net(8);
  const Mesh mesh("data=2,stage=2", parse_devices("emu:0-3"));
  Partitioned parts = pipeline(net.graph, mesh, {.micro_batches = 4, .update = UpdateAt::shards});
  EXPECT_EQ(batch_size(parts.graph()), 8);
  const auto places = [](Graph& graph) {
    std::map<std::string, Location> all;
    for (const Variable variable : graph.variables()) all[variable.path()] = variable.location();
    return all;
  };
  for (const std::int64_t samples : {5, 1, 11}) {
    Graph other;
    with_batch_size(parts.graph(), samples, other);
    verify(other);
    EXPECT_EQ(places(other), places(parts.graph()));
    for (const Tensor input : other.inputs()) EXPECT_EQ(input.shape()[0], samples);
  }
}

TEST(PipelineTest, NormalisesBatchesByTheStatisticsOfMicroBatches) {
  // The parts of data parallelism are those of micro-batches.
  const auto build = [](Graph& graph) {
    Tensor x = graph.input("image", {{7, 2, 6, 6}, DType::f64});
    const Tensor label = graph.input("label", {{7}, DType::i64});
    x = nn::batch_normalization(nn::conv2d(x, 3, 3, {}, "conv1"), nn::Mode::training, {}, "norm1");
    x = nn::batch_normalization(nn::conv2d(ops::relu(x), 3, 3, {}, "conv2"), nn::Mode::training, {}, "norm2");
    optim::momentum(ops::softmax_cross_entropy(nn::linear(ops::flatten(x), 3, {}, "fc"), label, "loss"));
  };
  Graph left;
  Graph right;
  build(left);
  build(right);
  Partitioned data = data_parallel(left, Mesh(parse_devices("emu:0-2")));
  Partitioned pipe = pipeline(right, stages(2), {.micro_batches = 3});
  test::Evaluator expected(data.graph());
  test::Evaluator got(pipe.graph());
  for (int step = 0; step < 2; ++step) {
    for (const Tensor input : left.inputs()) {
      const test::Array values = test::input_values(input, 3, static_cast<std::uint64_t>(step));
      expected.set(data.at(input), values);
      got.set(pipe.at(right.find_input(input.path())), values);
    }
    expected.step();
    got.step();
  }
  for (const Variable variable : right.variables()) {
    const test::Array whole = test::assemble(got, pipe, variable);
    const Variable other = left.find_variable(variable.path());
    EXPECT_LE(test::largest_difference(whole, test::assemble(expected, data, other)), 1e-12)
        << variable.path();
  }
}

/// The stage of every layer's weight, `layer_1` and so on.
std::vector<int> stages_of_layers(Partitioned& parts, Graph& graph, int layers) {
  std::vector<int> result(static_cast<std::size_t>(parts.mesh().size()), 0);
  for (int i = 0; i < layers; ++i) {
    const Variable weight = graph.find_variable("layer" + std::to_string(i) + "x/weight");
    ++result[static_cast<std::size_t>(parts.pieces(weight).front().location)];
  }
  return result;
}

Tensor chain(Graph& graph, int layers, std::int64_t samples, std::int64_t width) {
  Tensor x = graph.input("x", {{samples, width}, DType::f32});
  const Tensor target = graph.input("target", {{samples, width}, DType::f32});
  for (int i = 0; i < layers; ++i) x = nn::linear(x, width, {}, "layer" + std::to_string(i) + "x");
  const Tensor loss = ops::mean_squared_error(x, target, "loss");
  optim::sgd(loss);
  return loss;
}

TEST(PipelineTest, EqualLayersAreCutEvenly) {
  Graph graph;
  chain(graph, 30, 16, 32);
  Partitioned parts = pipeline(graph, stages(4));
  EXPECT_EQ(stages_of_layers(parts, graph, 30), (std::vector<int>{8, 8, 7, 7}));
}

TEST(PipelineTest, IsCutByCostsThatTheCallerKnows) {
  Graph graph;
  chain(graph, 9, 4, 8);
  const auto cost = [](Operator op) {
    if (op.type() != "linear") return 0.0;
    return op.path().starts_with("layer0x") ? 6.0 : 1.0;
  };
  Partitioned parts = pipeline(graph, stages(3), {.micro_batches = 2, .cost = cost});
  EXPECT_EQ(stages_of_layers(parts, graph, 9), (std::vector<int>{1, 4, 4}));
}

TEST(PipelineTest, AStageHasItsUpdatesAndGradients) {
  ResidualNetwork net(8);
  Partitioned parts = pipeline(net.graph, stages(3), {.micro_batches = 4});
  Graph& graph = parts.graph();
  for (const Variable variable : graph.variables()) {
    if (!variable.has_next()) continue;
    const Operator update = variable.next().producer();
    EXPECT_EQ(update.location(), variable.location()) << variable.path();
    for (const Tensor input : update.inputs()) EXPECT_EQ(input.location(), variable.location());
  }
  // What is sent between stages are activations, their gradients, and scalars.
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    if (op.type() != "copy" || op.input(0).location().kind == DeviceKind::cpu) continue;
    const Shape& shape = op.output().shape();
    EXPECT_TRUE(shape.rank() == 0 || shape[0] == 2) << op.path();
  }
}

TEST(PipelineTest, NamesWhatNeedsTheWholeBatch) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const Tensor hidden = nn::linear(x, 4, {}, "first");
  // Softmax over the samples.
  const Tensor y = nn::linear(ops::transpose(ops::softmax(hidden, 0), {1, 0}), 4, {}, "second");
  optim::sgd(ops::mean(y, {0, 1}, false, "loss"));
  EXPECT_EQ(error_text([&] { pipeline(graph, stages(2), {.micro_batches = 2}); }),
            "[pipeline] softmax: needs first/linear of the whole batch, and micro-batches come one after the "
            "other; "
            "hint: data_parallel divides such a graph");
}

TEST(PipelineTest, SaysWhatIsWrong) {
  ResidualNetwork net(4);
  EXPECT_EQ(error_text([&] { pipeline(net.graph, stages(60)); }),
            "[pipeline] 20 operators can't be cut into 60 stages; hint: take fewer stages, or divide the "
            "samples along a second axis: data=2,stage=4");
  EXPECT_EQ(error_text([&] { pipeline(net.graph, stages(2), {.micro_batches = -1}); }),
            "[pipeline] -1 micro-batches were asked for");
  EXPECT_EQ(error_text([&] { pipeline(net.graph, Mesh("data=2,model=2", parse_devices("emu:0-3"))); }),
            "[mesh] data=2,model=2 has no axis stage");
  EXPECT_EQ(
      error_text([&] { pipeline(net.graph, Mesh("data=2,model=1,stage=2", parse_devices("emu:0-3"))); }),
      "[pipeline] the mesh data=2,model=1,stage=2 has other axes than stage, of the stages, and data, of "
      "the samples");
  PipelineOptions synchronised;
  synchronised.partition.synchronize_batch_normalization = true;
  EXPECT_EQ(error_text([&] { pipeline(net.graph, stages(2), synchronised); }),
            "[pipeline] batch normalisation takes the statistics of a micro-batch and can't be synchronised; "
            "hint: data_parallel can do it");
}

}  // namespace
}  // namespace purine::parallel
