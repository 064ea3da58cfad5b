// A graph from its parts: inputs, variables, operators, gradients and next values. Building runs nothing; the
// result can be checked, printed, and drawn.
#include <fmt/core.h>

#include <fstream>

#include "purine/gradient/gradient.h"
#include "purine/graph/graph.h"
#include "purine/ops/constant.h"
#include "purine/ops/loss.h"
#include "purine/ops/matmul.h"
#include "purine/ops/random.h"
#include "purine/ops/relu.h"
#include "purine/ops/update.h"

using namespace purine;

int main() {
  Graph graph;
  // Inputs are what the host supplies for each iteration: here 8 samples of 4 numbers, and their labels.
  const Tensor x = graph.input("x", {{8, 4}, DType::f32});
  const Tensor label = graph.input("label", {{8}, DType::i64});

  // Variables live across iterations. What is made while a scope lives has a path below it.
  Tensor logits;
  {
    auto scope = graph.scope("classifier");
    const TensorInfo info{{3, 4}, DType::f32};
    const Variable weight = graph.variable("weight", info, ops::make_random_normal(info, 0, 0.1));
    logits = ops::linear(ops::relu(x), weight);
  }
  const Tensor loss = ops::softmax_cross_entropy(logits, label, "loss");

  // Gradients are operators of the same graph, and so is the update: it makes the variable's next value.
  const Variable weight = graph.find_variable("classifier/weight");
  const Tensor gradient = gradients(loss, {weight})[0];
  const Tensor rate = ops::constant(graph, {{}, DType::f32}, 0.1, "rate");
  graph.set_next(weight, ops::sgd_update(weight, gradient, rate));
  graph.watch(loss);  // the host reads it in each iteration

  verify(graph);
  fmt::print("{}", dump(graph));
  std::ofstream("graph.dot") << dot(graph);  // dot -Tsvg graph.dot > graph.svg

  // A mistake is found where it is made, and said with the path, what came and what is needed.
  try {
    auto scope = graph.scope("mistake");
    ops::linear(x, weight, label);
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
  }
  return 0;
}
