// Pipeline parallelism: the operators of a graph in stages at different locations, and the micro-batches of a
// batch on their way through them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"
#include "purine/parallel/schemes.h"

namespace purine::parallel {

struct PipelineOptions {
  /// Into how many parts a batch is cut; 0: twice as many as there are stages. A batch of fewer samples is
  /// cut into single ones; where it doesn't come out even the first parts have one sample more.
  int micro_batches = 0;
  /// The mesh's axis whose coordinates are the stages. A mesh of one axis is taken whatever the axis is
  /// called.
  std::string stage_axis = "stage";
  /// Divides the samples of every micro-batch, where the mesh has such an axis besides the stages.
  std::string samples_axis = "data";
  /// Where updates are computed, along the samples' axis.
  UpdateAt update = UpdateAt::everywhere;
  /// What an operator of the graph takes, in any unit: measured, for instance. None: estimated from the
  /// contract's cost.
  std::function<double(Operator)> cost = {};
  /// How much of the work each stage has, in any unit; none: all the same. See divide_into_stages.
  std::vector<double> stage_shares = {};
  PartitionOptions partition = {};
};

/// Pipeline parallelism (Narayanan et al., "PipeDream", 2019, with an update only after all micro-batches).
///
/// The operators before the gradient's are cut, in their order, into runs of as equal a cost as can be, or of
/// costs by `stage_shares` (stages.h): stage s is at coordinate s of the stages' axis, with its variables,
/// its gradients and its updates. What goes from stage to stage is copied. Every operator that the batch
/// meets is there once a micro-batch, below `@1.2` for the third micro-batch at the second location, as a
/// piece of the whole batch's: losses divide by all samples, random numbers are those of the whole batch, and
/// the sum of the micro-batches' gradients, added in their order, is the whole batch's gradient.
///
/// Each stage works in the order 1F1B (schedule.h): stage s of S has at most S - s micro-batches between
/// forward and backward, so that activations take memory by the number of stages, not of micro-batches. That
/// order is in the graph, as operators of type `after`. Gradients of weights come when a stage has nothing
/// better to do, up to a micro-batch later.
///
/// Batch normalisation takes the statistics of each micro-batch (at each location); running statistics follow
/// their mean, weighted by samples.
///
/// Throws Error if the mesh has other axes, if the graph has fewer operators than there are stages, if
/// batch normalisation is to be synchronised, and, naming it, for an operator that needs the whole batch
/// before the backward pass is over; and whatever partition() throws.
Partitioned pipeline(Graph& graph, const Mesh& mesh, const PipelineOptions& options = {});

}  // namespace purine::parallel
