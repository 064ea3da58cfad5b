// Networks are functions on tensors: ready ones by name, and one's own from layers.
#include <fmt/core.h>

#include "purine/models/models.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"

using namespace purine;

// A layer makes the variables it needs, in a scope of its name. `mode` says whether batches normalise
// themselves and elements drop out (training), or not (inference); the variables are the same, so a
// checkpoint fits both.
Tensor tiny_network(Tensor image, std::int64_t classes, nn::Mode mode) {
  auto scope = image.graph().scope("tiny");
  Tensor x =
      nn::conv2d(image, 8, 3, {.padding = 1, .has_bias = false, .weight = nn::kaiming_normal()}, "conv1");
  x = ops::relu(nn::batch_normalization(x, mode, {}, "norm1"));
  x = ops::flatten(ops::max_pool2d(x));
  return nn::linear(nn::dropout(x, 0.5, mode), classes, {}, "fc");
}

std::int64_t parameters(Graph& graph) {
  std::int64_t count = 0;
  for (const Variable variable : graph.variables()) {
    if (variable.trainable()) count += variable.shape().elements();
  }
  return count;
}

int main() {
  for (const models::Model& model : models::all_models()) {
    Graph graph;
    const auto [channels, height, width] = model.image;
    const Tensor image = graph.input("image", {{1, channels, height, width}, DType::f32});
    model.build(image, model.classes, nn::Mode::inference);
    fmt::print("{:24}{:12} parameters  {}\n", model.name, parameters(graph), model.summary);
  }

  Graph graph;
  const Tensor image = graph.input("image", {{16, 1, 28, 28}, DType::f32});
  const Tensor label = graph.input("label", {{16}, DType::i64});
  const Tensor logits = tiny_network(image, 10, nn::Mode::training);
  const Tensor loss = ops::softmax_cross_entropy(logits, label);
  optim::momentum(loss, {.learning_rate = 0.05, .momentum = 0.9});  // adds gradients and updates
  verify(graph);
  fmt::print("\ntiny_network has {} operators in training, and these variables:\n", graph.operator_count());
  for (const Variable variable : graph.variables()) {
    fmt::print("  {:40}{:18}{}\n", variable.path(), variable.info().text(),
               variable.trainable() ? "learnt" : "");
  }
  return 0;
}
