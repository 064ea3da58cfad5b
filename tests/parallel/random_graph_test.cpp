#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/core/random.h"
#include "purine/gradient/gradient.h"
#include "purine/ops/bias.h"
#include "purine/ops/binary.h"
#include "purine/ops/concat.h"
#include "purine/ops/constant.h"
#include "purine/ops/dropout.h"
#include "purine/ops/matmul.h"
#include "purine/ops/random.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/ops/softmax.h"
#include "purine/ops/unary.h"
#include "purine/ops/update.h"
#include "purine/parallel/partition.h"
#include "tests/parallel/compare.h"

namespace purine::parallel {
namespace {

/// Draws numbers one after the other.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, 1, 0) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(next_++, static_cast<std::uint64_t>(bound)));
  }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

/// A random graph of matrices, its loss, gradients and plain descent, in f64.
class RandomGraph {
 public:
  Graph graph;

  explicit RandomGraph(Draw& draw) : draw_(draw) {
    for (int i = 0; i < 2; ++i) {
      const Shape shape{extents[draw.below(3)], extents[draw.below(3)]};
      pool_.push_back(graph.input("input_" + std::to_string(i) + "x", {shape, DType::f64}));
    }
    for (int i = 0; i < 14; ++i) pool_.push_back(random_operator());
    Tensor loss = ops::mean(pool_.back());
    for (int i = 0; i < 3; ++i) loss = ops::add(loss, ops::mean(pick()));
    graph.watch(loss);
    graph.watch(pick());
    const std::vector<Variable> variables = graph.variables();
    const std::vector<Tensor> made = gradients(loss, std::vector<Tensor>(variables.begin(), variables.end()));
    const Tensor rate = ops::constant(graph, {{}, DType::f64}, 0.1, "rate");
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (made[i].valid()) graph.set_next(variables[i], ops::sgd_update(variables[i], made[i], rate));
    }
  }

 private:
  static constexpr std::int64_t extents[] = {4, 5, 6};

  Tensor pick() {
    return pool_[static_cast<std::size_t>(draw_.below(static_cast<std::int64_t>(pool_.size())))];
  }

  Variable variable(const Shape& shape) {
    const TensorInfo info{shape, DType::f64};
    return graph.variable("variable_" + std::to_string(variables_++) + "x", info,
                          ops::make_random_normal(info, 0, 0.4));
  }

  Tensor random_operator() {
    const Tensor x = pick();
    const std::int64_t rows = x.shape()[0];
    const std::int64_t columns = x.shape()[1];
    switch (draw_.below(13)) {
      case 0:
        return ops::relu(x);
      case 1:
        return ops::linear(x, variable({extents[draw_.below(3)], columns}));
      case 2: {
        const std::int64_t features = extents[draw_.below(3)];
        return ops::linear(x, variable({features, columns}), variable({features}));
      }
      case 3:
        return ops::transpose(x, {1, 0});
      case 4:
        return ops::add(x, variable({rows, columns}));
      case 5:
        return ops::multiply(x, variable({draw_.below(2) == 0 ? rows : 1, columns}));
      case 6:
        return ops::softmax(x, static_cast<int>(draw_.below(2)));
      case 7:
        return ops::concat({ops::slice(x, 1, 0, columns / 2), ops::slice(x, 1, columns / 2, columns)}, 1);
      case 8:
        return ops::reshape(ops::relu(ops::reshape(x, {rows * columns})), {rows, columns});
      case 9: {
        const auto axis = static_cast<int>(draw_.below(2));
        return ops::bias(x, variable({x.shape()[axis]}), axis);
      }
      case 10:
        return ops::matmul(x, ops::transpose(x, {1, 0}));
      case 11:
        return ops::dropout(x, 0.25);
      default:
        return ops::subtract(x, ops::mean(x, {static_cast<int>(draw_.below(2))}, true));
    }
  }

  Draw& draw_;
  std::vector<Tensor> pool_;
  int variables_ = 0;
};

Placement random_placement(Draw& draw, Tensor tensor, int coordinates) {
  if (tensor.shape().rank() == 0 || draw.below(3) == 0) return replicated();
  const auto dimension = static_cast<int>(draw.below(tensor.shape().rank()));
  const std::int64_t extent = tensor.shape()[dimension];
  const auto first = static_cast<int>(draw.below(4) == 0 ? draw.below(coordinates) : 0);
  if (draw.below(4) == 0) return split(dimension, 1, first);
  if (extent % 2 == 0 && draw.below(4) == 0) return split(dimension, extent / 2, first);
  return split(dimension, 0, first);
}

class RandomGraphTest : public testing::TestWithParam<const char*> {};

TEST_P(RandomGraphTest, EqualsOneLocationAtRandomSpecs) {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    RandomGraph random(draw);
    Graph& graph = random.graph;
    std::vector<Location> locations;
    const std::string axes = GetParam();
    const int count = axes == "a=2" ? 2 : axes == "a=3" ? 3 : axes == "a=2,b=2" ? 4 : 6;
    for (int i = 0; i < count; ++i) locations.push_back({i / 3, DeviceKind::emu, i % 3});
    Mesh mesh(axes, locations);
    if (seed % 4 == 3) {
      mesh.set_shares("a",
                      axes == "a=3" ? std::vector<std::int64_t>{1, 2, 1} : std::vector<std::int64_t>{1, 3});
    }
    Specs specs(mesh);
    const auto say = [&](Tensor tensor) {
      int split_before = -1;
      for (const MeshAxis& axis : mesh.axes()) {
        Placement placement = random_placement(draw, tensor, axis.size);
        // Two axes that split one dimension split it by the same units.
        if (placement.is_split() && placement.dimension == split_before) placement = replicated();
        if (placement.is_split()) split_before = placement.dimension;
        specs.set(tensor, axis.name, placement);
      }
    };
    for (const Tensor input : graph.inputs()) say(input);
    for (const Variable variable : graph.variables()) say(variable);
    for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
      if (draw.below(6) == 0) say(graph.op(i).output());
    }
    Partitioned parts = partition(graph, specs);
    test::expect_same(graph, parts, 2, 1e-11);
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RandomGraphTest, testing::Values("a=2", "a=3", "a=2,b=2", "a=2,b=3"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) {
                             if (c == '=' || c == ',') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace purine::parallel
