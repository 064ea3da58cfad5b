// Gradients as a graph.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "purine/graph/graph.h"

namespace purine {

/// Adds operators to the loss's graph that compute the gradients of the loss, a floating scalar, by the given
/// floating tensors: variables, inputs, or results of operators. Returns one tensor each, of its info; the
/// tensor is not valid where the loss does not depend on it through floating tensors.
///
/// Reverse mode: the loss's gradient by itself is a constant 1, and from there every operator that lies on a
/// path from one of the given tensors to the loss adds, by its contract, the gradients of those of its inputs
/// that lie on such a path. A tensor that several operators read gets the sum of what they give (`sum_n`),
/// the last reader's first. What an operator adds lies at the operator's location, and in the copy of its
/// scope under `gradient`: what belongs to `lenet/conv1` is in `gradient/lenet/conv1`. Takes time linear in
/// the size of the graph and of what is added.
///
/// The results are tensors like all others: gradients of gradients come from calling this again on a loss
/// made of them.
///
/// Throws Error if the loss is not a floating scalar, if a given tensor is not floating, and, naming the
/// operator, if an operator on such a path has no gradient.
std::vector<Tensor> gradients(Tensor loss, std::span<const Tensor> with_respect_to);
std::vector<Tensor> gradients(Tensor loss, std::initializer_list<Tensor> with_respect_to);

/// True for what `gradients` has added, in whatever graph was made from that: an operator below a scope
/// `gradient`.
bool is_gradient(Operator op);

}  // namespace purine
