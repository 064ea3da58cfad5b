// What a model gives.
#pragma once

#include <vector>

#include "purine/graph/graph.h"

namespace purine::models {

/// A classifier in the middle of a network that helps to train the layers below it.
struct AuxiliaryHead {
  Tensor logits;      ///< [N, classes]
  double weight = 0;  ///< of its loss in the sum
};

/// A network built on a batch of images.
struct Network {
  Tensor logits;                         ///< [N, classes]
  std::vector<AuxiliaryHead> auxiliary;  ///< in training only, and in few models
};

/// The mean softmax cross-entropy of the logits and, with their weights, of the auxiliary heads: a scalar.
/// `labels` are [N], i32 or i64.
Tensor classification_loss(const Network& network, Tensor labels);

}  // namespace purine::models
