// Operators that run as one, or in another order, since that saves passes over memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::program {

/// What runs in place of one or several operators of a graph. Its path names them:
/// `conv1/batch_normalization + relu`.
struct FusedOperator {
  ContractPtr contract;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;  ///< those of its operators that others read
  std::string path;
};

/// Which operators of a graph run as one. The graph stays as it is: what it describes, gradients and
/// partitions are made from single operators, and only what is frozen has the fused ones.
struct Fusions {
  std::vector<bool> absorbed;                    ///< by operator: it runs as part of another one
  std::map<std::uint32_t, FusedOperator> fused;  ///< by operator: what runs in its place
  /// By operator: the two that run in its place, one after the other. The second reads what the first makes
  /// as a tensor, and makes that tensor anew, which is what all others read.
  std::map<std::uint32_t, std::array<FusedOperator, 2>> swapped;

  /// Operators that run less than without.
  std::size_t saved() const;
};

/// Finds them among the operators that run (`live`):
///
///   batch normalisation and a rectifier that alone reads its result;
///   batch normalisation, the sum of its result and something else, and the sum's rectifier, as at the end of
///   a residual block; the gradients of the two, where nothing else reads the rectifier's gradient; 1 x 1
///   convolutions that read one image (ops::sibling_conv2d); their gradients by the image, of which nothing
///   but a sum reads any, and that sum, with one summand more if it has one.
///
/// And a rectifier whose result max pooling alone reads runs after it, and their gradients the other way
/// round, where that leaves less to rectify: the greatest of rectified values is the greatest value,
/// rectified. What is not pooled then needs no memory in the backward pass.
///
/// Operators are fused or swapped only where all lie at one location, which isn't a CUDA device, and the
/// tensors between them are read by nobody else: neither by the host, nor as a variable's next value.
Fusions find_fusions(Graph& graph, const std::vector<bool>& live);

}  // namespace purine::program
