// Gradients follow the batch: a graph made for another number of samples is the graph built for it.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "purine/core/random.h"
#include "purine/gradient/gradient.h"
#include "purine/graph/transform.h"
#include "purine/ops/activation.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/dropout.h"
#include "purine/ops/loss.h"
#include "purine/ops/matmul.h"
#include "purine/ops/random.h"
#include "purine/ops/reduce.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using test::Array;

/// Losses of all kinds over a small network, their gradient by the weight, and that gradient's.
struct Network {
  Graph graph;
  std::vector<Tensor> results;

  explicit Network(std::int64_t samples) {
    const Tensor x = graph.input("x", {{samples, 2, 3}, DType::f64});
    const Tensor labels = graph.input("labels", {{samples}, DType::i64});
    const TensorInfo weight_info{{4, 6}, DType::f64};
    const Variable weight =
        graph.variable("weight", weight_info, ops::make_random_normal(weight_info, 0, 0.5));
    const Tensor hidden = ops::dropout(ops::tanh(ops::linear(ops::flatten(x), weight, {})), 0.3);
    const Tensor cross_entropy = ops::softmax_cross_entropy(hidden, labels);
    const Tensor target = ops::constant(graph, hidden.info(), 0.25);
    const Tensor squared = ops::mean_squared_error(hidden, target);
    const Tensor mean = ops::sum(ops::square(ops::mean(hidden, {0})));
    const Tensor loss = ops::add(ops::add(cross_entropy, squared), mean);
    const Tensor first = gradients(loss, {weight})[0];
    const Tensor second = gradients(ops::sum(ops::square(first)), {weight})[0];
    results = {loss, ops::accuracy(hidden, labels, 2), first, second};
    for (const Tensor result : results) graph.watch(result);
  }
};

std::vector<Array> evaluate(Graph& graph, std::span<const Tensor> wanted, std::int64_t samples) {
  test::Evaluator evaluator(graph);
  Array x({{samples, 2, 3}, DType::f64});
  Array labels({{samples}, DType::i64});
  const Random random(5, 5, 0);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    x.set(i, static_cast<double>(random.normal(static_cast<std::uint64_t>(i))));
  }
  for (std::int64_t i = 0; i < samples; ++i) labels.set(i, static_cast<double>(i % 4));
  evaluator.set(graph.find_input("x"), x);
  evaluator.set(graph.find_input("labels"), labels);
  return evaluator.compute(wanted);
}

TEST(BatchSizeTest, GradientsFollowTheBatch) {
  Network built_for_eight(8);
  for (const std::int64_t samples : {1, 3, 8, 20}) {
    SCOPED_TRACE(samples);
    Graph made;
    with_batch_size(built_for_eight.graph, samples, made);
    verify(made);
    std::vector<Tensor> wanted;
    for (const Tensor result : built_for_eight.results) wanted.push_back(made.tensor(result.index()));
    Network built(samples);
    const std::vector<Array> expected = evaluate(built.graph, built.results, samples);
    const std::vector<Array> got = evaluate(made, wanted, samples);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got[i], expected[i]) << "result " << i;
  }
}

}  // namespace
}  // namespace purine
