// Slices and concatenations that are ranges of other tensors' bytes, run.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "purine/ops/binary.h"
#include "purine/ops/concat.h"
#include "purine/ops/random.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"
#include "purine/session/session.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

/// Rows of matrices of 8 columns taken apart and put together, with operators in place between; the values of
/// nearly all tensors show in what is watched.
class Rows {
 public:
  Graph graph;
  Tensor result;

  explicit Rows(std::uint32_t seed) : random_(seed) {
    pool_.push_back(graph.input("x", {{6, 8}, DType::f64}));
    const TensorInfo info{{2, 8}, DType::f64};
    const Variable w = graph.variable("w", info, ops::make_random_normal(info, 0, 1));
    pool_.push_back(w);
    for (std::size_t i = 0, count = 15 + below(30); i < count; ++i) pool_.push_back(next());
    Tensor sum = ops::mean(pool_.front());
    for (std::size_t i = 1; i < pool_.size(); ++i) {
      if (i + 4 > pool_.size() || below(4) == 0) sum = ops::add(ops::scale(sum, 0.7), ops::mean(pool_[i]));
    }
    Tensor rows = pool_.back();
    while (rows.shape()[0] < 2) rows = ops::concat({rows, pool_[1]}, 0);
    const Tensor two = ops::slice(rows, 0, 0, 2);
    graph.set_next(w, ops::scale(ops::add(w, ops::relu(two)), 0.5));
    result = sum;
    graph.watch(sum);
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  Tensor pick() {
    const std::size_t from = below(6) == 0 || pool_.size() < 5 ? pool_.size() : 5;
    return pool_[pool_.size() - 1 - below(from)];
  }

  Tensor next() {
    const Tensor x = pick();
    const std::int64_t rows = x.shape()[0];
    switch (below(6)) {
      case 0: {
        std::vector<Tensor> parts = {x};
        while (parts.size() < 3 || below(2) == 0) parts.push_back(pick());
        const Tensor all = ops::concat(parts, 0);
        return all.shape()[0] > 12 ? ops::slice(all, 0, 2, 10) : all;
      }
      case 1: {
        const auto begin = static_cast<std::int64_t>(below(static_cast<std::size_t>(rows)));
        return ops::slice(
            x, 0, begin,
            begin + 1 + static_cast<std::int64_t>(below(static_cast<std::size_t>(rows - begin))));
      }
      case 2:
        return ops::reshape(ops::relu(ops::reshape(x, {rows * 8})), {rows, 8});
      case 3: {
        // Columns are not contiguous.
        const Tensor left = ops::slice(x, 1, 0, 3);
        return ops::concat({ops::slice(x, 1, 3, 8), ops::relu(left)}, 1);
      }
      case 4:
        return ops::scale(x, 0.9);
      default:
        return ops::subtract(x, ops::mean(pick()));
    }
  }

  std::mt19937 random_;
  std::vector<Tensor> pool_;
};

double element(std::int64_t iteration, std::size_t i) {
  return static_cast<double>((static_cast<std::size_t>(iteration) * 11 + i * 7) % 23) / 11 - 1;
}

TEST(RangesTest, EqualTensorsInMemoryOfTheirOwn) {
  constexpr int steps = 4;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rows rows(seed);
    const Tensor x = rows.graph.find_input("x");
    test::Evaluator evaluator(rows.graph);
    std::vector<double> expected;
    for (int step = 0; step < steps; ++step) {
      std::vector<double> values;
      for (std::size_t i = 0; i < 48; ++i) values.push_back(element(step, i));
      evaluator.set(x, {x.info(), values});
      expected.push_back(evaluator.step({rows.result})[0].at(0));
    }
    for (const int workers : {1, 2, 4}) {
      Runtime runtime({.workers = workers});
      Session session(runtime, rows.graph, {.window = workers, .poison_freed = seed % 2 == 0});
      session.feed(x, [](std::int64_t iteration, std::span<std::byte> value) {
        for (std::size_t i = 0; i < 48; ++i) {
          const double number = element(iteration, i);
          std::memcpy(value.data() + i * sizeof(double), &number, sizeof(double));
        }
      });
      std::vector<double> got;
      for (const Step& step : session.run({.steps = steps})) got.push_back(step.value(rows.result));
      ASSERT_EQ(got, expected) << workers << " workers";
    }
  }
}

}  // namespace
}  // namespace purine
