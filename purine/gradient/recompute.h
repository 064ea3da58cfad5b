// Activations computed a second time, where the backward pass reads them, instead of being kept for it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "purine/graph/graph.h"

namespace purine {

/// A way to keep less for the backward pass: what it reads of an operator's outputs is computed again.
struct Recomputation {
  /// Run again together, ascending: the operator that makes what is read, whatever of its inputs is not kept
  /// either, and views of it.
  std::vector<Operator> operators;
  std::size_t bytes = 0;  ///< of what need not be kept any more
  double moved = 0;       ///< bytes that the operators read and write: what it costs, about
};

/// Every such way whose operators are bound by memory (a rectifier, normalisation, pooling, dropout, a
/// concatenation; not a convolution), by the costs in their contracts, and start from what is kept anyway or
/// from variables. The one that saves the most bytes for those that it moves comes first; ties go by
/// operator. Those that save less than a fiftieth of what they move are left out.
///
/// Worked example: of convolution -> batch normalisation -> rectifier -> convolution, the gradient of the
/// normalisation reads the first convolution's result and the second convolution's weight gradient the
/// rectifier's. The latter is half of what is kept, and comes again from the former by two operators. Without
/// the normalisation nothing is saved: the rectifier's result lies where the convolution's was, which nobody
/// else reads.
///
/// Takes a graph with gradients; others, and those that operators of other locations alone read, have nothing
/// to compute again.
std::vector<Recomputation> recomputations(Graph& graph);

/// Makes the graph in which the named operators of `from` run again for the backward pass, in `to`, which
/// must be empty. Returns what each tensor of `from` is there, by index. Everything keeps its path, inputs
/// and variables their order, and all values are the same to the bit: what runs again is the same operator,
/// with the same random numbers.
///
/// The first operator of the backward pass (`is_gradient`) that reads an output of one of them is where it
/// runs again, and this and all later ones read the copy's. A copy of `lenet/pool1/max_pool2d` is
/// `@again/lenet/pool1/max_pool2d`, one of `@1/lenet/…` is below `@1_again`. It reads copies of what runs
/// again as well, and everything else but variables through `ops::after` that reader's gradient, without
/// which it would run as soon as its inputs are there, and its result be kept all the same. An operator of
/// the backward pass that has no gradient to read goes on reading the original.
///
/// `from` must outlive `to`: with_batch_size makes `to` for another number of samples from it.
///
/// Throws Error if `to` has vertices, and for a path of no operator or of one that can't run again: one of
/// the backward pass, one that brings samples in, crosses locations or has side effects, and one that reads
/// nothing but variables.
std::vector<Tensor> recompute(Graph& from, std::span<const std::string> operators, Graph& to);

}  // namespace purine
