#include "purine/parallel/buckets.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/program/memory_plan.h"
#include "purine/program/ranges.h"
#include "tests/parallel/compare.h"

namespace purine::parallel {
namespace {

/// Layers of 10 and 16 features, whose biases are 40 and 64 bytes.
void build(Graph& graph, DType dtype) {
  Tensor x = graph.input("x", {{6, 12}, dtype});
  const Tensor label = graph.input("label", {{6}, DType::i64});
  x = ops::relu(nn::linear(x, 10, {}, "fc1"));
  x = ops::relu(nn::linear(x, 16, {}, "fc2"));
  optim::momentum(ops::softmax_cross_entropy(nn::linear(x, 5, {}, "fc3"), label, "loss"));
}

std::vector<Operator> of_type(Graph& graph, std::string_view type, std::string_view path) {
  std::vector<Operator> found;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (graph.op(i).type() == type && graph.op(i).path().starts_with(path)) found.push_back(graph.op(i));
  }
  return found;
}

Partitioned divided(Graph& graph, std::size_t bucket_bytes, int locations = 2) {
  std::vector<Location> devices;
  for (int i = 0; i < locations; ++i) devices.push_back({0, DeviceKind::emu, i});
  return data_parallel(graph, Mesh(devices),
                       {.partition = {.all_reduce = central_all_reduce, .bucket_bytes = bucket_bytes}});
}

TEST(BucketsTest, AreReducedAtOnce) {
  Graph graph;
  build(graph, DType::f32);
  Partitioned parts = divided(graph, 1U << 20U);
  // Six gradients in one tensor, to one location and back; and the loss.
  EXPECT_EQ(of_type(parts.graph(), "copy", "all_reduce/").size(), 4U);
  const std::vector<Operator> buckets = of_type(parts.graph(), "concat", "bucket/");
  ASSERT_EQ(buckets.size(), 2U);
  // fc3 is 80 + 5 (and 11), fc2 160 + 16, fc1 120 (and 8) + 10.
  EXPECT_EQ(buckets[0].output().shape(), (Shape{80 + 16 + 160 + 16 + 128 + 10}));
  Partitioned single = divided(graph, 0);
  EXPECT_EQ(of_type(single.graph(), "copy", "all_reduce/").size(), 14U);
  EXPECT_EQ(of_type(single.graph(), "concat", "bucket").size(), 0U);
}

TEST(BucketsTest, TakeSmallTensorsAloneAsTheyAreProduced) {
  Graph graph;
  build(graph, DType::f32);
  // At most 512 bytes are small; fc3's weight, 320, and fc2's bias, 64, are, fc2's weight, 640, isn't. fc1's
  // bias is last, and has an eighth of a bucket for itself, where its weight, 480, has no room.
  Partitioned parts = divided(graph, 2048);
  const std::vector<Operator> buckets = of_type(parts.graph(), "concat", "bucket");
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].output().shape(), (Shape{80 + 16 + 16 + 120}));
}

TEST(BucketsTest, TheLastOneIsSmall) {
  Graph graph;
  Tensor x = graph.input("x", {{6, 8}, DType::f32});
  for (int i = 0; i < 12; ++i) x = nn::linear(x, 8, {}, "layer" + std::to_string(i));
  optim::sgd(ops::softmax_cross_entropy(x, graph.input("label", {{6}, DType::i64}), "loss"));
  // A layer has 256 and 32 bytes, which take 64. An eighth has room for those of layer 0, whose gradients are
  // the last, and for a bias; the other eleven layers share the other bucket.
  Partitioned parts = divided(graph, 4096);
  const std::vector<Operator> buckets = of_type(parts.graph(), "concat", "bucket");
  ASSERT_EQ(buckets.size(), 4U);
  std::set<std::int64_t> sizes;
  for (const Operator bucket : buckets) sizes.insert(bucket.output().shape()[0]);
  EXPECT_EQ(sizes, (std::set<std::int64_t>{64 + 16 + 8, 11 * 64 + 10 * 16}));
}

TEST(BucketsTest, AreFilledInTheOrderOfProduction) {
  Graph graph;
  Tensor x = graph.input("x", {{6, 8}, DType::f32});
  for (int i = 0; i < 12; ++i) x = nn::linear(x, 8, {}, "layer" + std::to_string(i) + "x");
  optim::sgd(ops::softmax_cross_entropy(x, graph.input("label", {{6}, DType::i64}), "loss"));
  // A layer has 256 and 32 bytes: three go into a bucket, the last ones first.
  Partitioned parts = divided(graph, 1024);
  const std::vector<Operator> buckets = of_type(parts.graph(), "concat", "bucket");
  ASSERT_EQ(buckets.size(), 8U);
  std::set<std::string> layers;
  for (const Tensor input : buckets.front().inputs()) {
    if (input.producer().type() != "reshape") continue;
    layers.insert(input.producer().input(0).path());
  }
  EXPECT_EQ(layers, (std::set<std::string>{"@0/gradient/layer0x/matmul", "@0/gradient/layer1x/matmul_2",
                                           "@0/gradient/layer2x/matmul_2"}));
}

TEST(BucketsTest, EqualOneLocation) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{900}, std::size_t{5000}, std::size_t{1} << 20U}) {
    for (const int locations : {2, 3, 7}) {  // seven have some without samples
      SCOPED_TRACE(std::to_string(bytes) + " bytes over " + std::to_string(locations));
      Graph graph;
      build(graph, DType::f64);
      Partitioned parts = divided(graph, bytes, locations);
      test::expect_same(graph, parts, 2, 1e-12, 5);
    }
  }
}

TEST(BucketsTest, AreMadeWhereTheyLie) {
  Graph graph;
  build(graph, DType::f32);
  Partitioned parts =
      data_parallel(graph, Mesh{"emu:0", "emu:1"}, {.partition = {.all_reduce = sharded_all_reduce}});
  program::Lowered lowered = program::lower(program::WholeGraph(parts.graph()));
  program::assign_layouts(parts.graph(), lowered, true);
  const program::MemoryPlan plan = program::plan_memory(lowered, program::serial_order(lowered), {});
  int slices = 0;
  int inputs = 0;
  for (std::uint32_t i = 0; i < lowered.operators.size(); ++i) {
    const program::LoweredOperator& op = lowered.operators[i];
    const std::string path = lowered.path(parts.graph(), i);
    if (path.find("bucket") == std::string::npos) continue;
    if (op.contract->type() == "slice") {
      EXPECT_TRUE(plan.elided[i]) << path;
      ++slices;
    }
    if (op.contract->type() != "concat") continue;
    for (const program::ByteRange& range : program::byte_ranges(lowered, op)) {
      const std::string producer = lowered.path(parts.graph(), lowered.tensors[range.part].producer);
      if (producer.find("padding") != std::string::npos) continue;
      EXPECT_EQ(plan.tensors[range.part].offset, plan.tensors[range.whole].offset + range.offset) << producer;
      ++inputs;
    }
  }
  EXPECT_EQ(slices, 2 * 6 + 2 * 2);  // the results, and each location's half at both
  EXPECT_EQ(inputs, 2 * 6 + 2 * 2);
}

}  // namespace
}  // namespace purine::parallel
