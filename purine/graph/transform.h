// Maps from one graph to another.
#pragma once

#include <cstdint>
#include <functional>

#include "purine/graph/graph.h"

namespace purine {

/// What a copy changes, vertex by vertex; what is not set stays as it is. All are called with vertices of the
/// graph that is copied.
struct CopyHooks {
  /// An operator's contract; one with another number of outputs is an error.
  std::function<ContractPtr(Operator)> contract = {};
  /// Where an operator and its outputs lie.
  std::function<Location(Operator)> location = {};
  /// What an input of the graph looks like.
  std::function<TensorInfo(Tensor)> input = {};
  /// The initial value of a variable, which also says its shape and dtype.
  std::function<ContractPtr(Variable)> initial = {};
  /// Where an input or variable of the graph lies.
  std::function<Location(Tensor)> leaf_location = {};
};

/// Adds to `to`, which must be empty, everything that `from` has. Names, scopes, next values, watched tensors
/// and the numbers of all vertices stay: `to.tensor(t.index())` is what `t` of `from` has become.
void copy_graph(Graph& from, Graph& to, const CopyHooks& hooks = {});

/// The number of samples of one iteration: the leading dimension of what data sources bring
/// (Contract::brings_samples) or, where there are none, of the first input that has dimensions. Throws Error
/// if sources disagree or there is nothing to tell it by.
std::int64_t batch_size(Graph& graph);

/// The same graph for another number of samples, in `out`, which must be empty: the last short batch of an
/// epoch, or an evaluation with larger batches. Variables keep their paths and shapes.
///
/// The batch is followed from the data sources and the inputs whose leading dimension is the batch, through
/// the operators' split rules; an operator that it meets becomes Contract::piece of all `samples` units, so
/// that means divide by the new number. Operators that it doesn't meet stay, except those that a consumer
/// needs in batch size (a constant, or a scalar that is broadcast), which follow. An operator that the batch
/// meets in a way that none of its rules allows is an error that names it.
void with_batch_size(Graph& from, std::int64_t samples, Graph& out);

}  // namespace purine
