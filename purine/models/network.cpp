#include "purine/models/network.h"

#include "purine/ops/loss.h"
#include "purine/ops/sum_n.h"
#include "purine/ops/unary.h"

namespace purine::models {

Tensor classification_loss(const Network& network, Tensor labels) {
  const Tensor main = ops::softmax_cross_entropy(network.logits, labels);
  if (network.auxiliary.empty()) return main;
  std::vector<Tensor> losses = {main};
  for (const AuxiliaryHead& head : network.auxiliary) {
    losses.push_back(ops::scale(ops::softmax_cross_entropy(head.logits, labels), head.weight));
  }
  return ops::sum_n(losses, "loss");
}

}  // namespace purine::models
