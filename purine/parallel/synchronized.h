// Batch normalisation with the statistics of all samples, wherever they are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/plan.h"
#include "purine/parallel/reshard.h"

namespace purine::parallel {

/// The rule under which an operator whose pieces would take their own statistics is divided exactly instead:
/// one of batch normalisation, divided over the samples. Null for any other.
std::optional<SplitRule> synchronized_rule(const Contract& contract, const SplitRule& approximate);
/// True if an operator is divided by such a rule along some axis.
bool is_synchronized(Operator op, std::span<const Division> divisions);

/// Adds, in place of the operator, what computes its pieces from sums over all locations, and gives the
/// pieces of its outputs. In training, one all-reduce each for mean and variance, around
///
///   mean = sum(x) / n, variance = sum((x - mean)^2) / n, y as in inference with these,
///
/// and in the gradient one each for those by scale and shift, with s = sqrt(variance + epsilon):
///
///   dx = scale / s * (dy - dshift / n - (x - mean) / s * dscale / n).
///
/// `inputs` are the pieces that the divisions ask for.
std::vector<Pieces> add_synchronized(Graph& graph, const Mesh& mesh, Resharder& resharder, Operator op,
                                     std::span<const Division> divisions, std::span<const Pieces> inputs);

}  // namespace purine::parallel
