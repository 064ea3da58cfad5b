// A graph for one location made one for many.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/collectives.h"
#include "purine/parallel/spec.h"

namespace purine::parallel {

struct PartitionOptions {
  /// How partial tensors become replicated; none: whatever is the cheapest over `link`.
  AllReduce all_reduce = {};
  Link link = {};
  /// In which format gradients are on their way to be summed: two bytes a number instead of four. None,
  /// unless you say so: as they are. See narrow_all_reduce for what is lost.
  Wire gradient_wire = {};
  /// Larger tensors are reduced in chunks of at most this.
  std::size_t chunk_bytes = std::size_t{4} << 20U;
  /// Tensors of at most a quarter of this are reduced several at a time, in buckets of at most this, which
  /// lie contiguously and need no packing; 0: each by itself.
  std::size_t bucket_bytes = std::size_t{1} << 20U;
  /// Batch normalisation takes the statistics of all samples, which costs an all-reduce of two vectors each
  /// way; otherwise each location takes those of its own samples, and running statistics follow their mean.
  bool synchronize_batch_normalization = false;
};

/// A graph that was divided over a mesh, and where everything of the one-location graph is in it.
///
/// What lies at the second location is found below `@1` under its old path (`@1/lenet/conv1/conv2d`), and so
/// on. A variable that is whole keeps its path at the first location, so that an evaluation graph for one
/// location shares it (`lenet/conv1/weight`, replica `@1/lenet/conv1/weight`); one that is split has only
/// pieces,
/// `@0/…`, `@1/…`. Inputs stay whole, in the memory of the first location's host, and are sent from there;
/// data sources run on the hosts of their pieces' locations. Random streams are those of the one-location
/// graph, so initial values and dropout are the same on any mesh.
class Partitioned {
 public:
  struct Data;  ///< see partitioned_data.h
  explicit Partitioned(std::unique_ptr<Data> data);
  Partitioned(Partitioned&&) noexcept;
  Partitioned& operator=(Partitioned&&) noexcept;
  ~Partitioned();

  /// What runs. It has a batch recipe where the one-location graph has samples: for another batch size, that
  /// one, which must outlive this, is made anew and divided with all variables lying as they do here.
  Graph& graph();
  const Mesh& mesh() const;
  /// The whole of a tensor of the one-location graph, at the first location (an input: on its host): what
  /// Step::value and Session::feed take. Throws Error for a tensor that is whole nowhere; watched tensors,
  /// inputs and replicated ones are.
  Tensor at(Tensor tensor) const;
  /// How a tensor lies.
  const Spec& spec(Tensor tensor) const;
  struct Piece {
    Tensor tensor;
    int location = 0;           ///< index in the mesh
    std::vector<Range> ranges;  ///< the elements of each dimension of the whole tensor
  };
  /// All pieces or replicas of a tensor, or the parts of the sum that it is, in the order of the mesh.
  std::vector<Piece> pieces(Tensor tensor) const;

 private:
  std::unique_ptr<Data> data_;
};

/// Divides a graph over the mesh of `specs`: forward, backward and update alike, through the operators' split
/// rules (make_plan in plan.h says how), with copies, sums, slices and concatenations where a tensor is
/// needed otherwise than it lies. An operator without a fitting rule runs whole at every location. Unequal
/// and empty pieces are right: means divide by the whole. Throws Error if the graph has more than one
/// location, is divided already, or has a variable whose initial value can't be divided as was said.
Partitioned partition(Graph& graph, const Specs& specs, const PartitionOptions& options = {});

}  // namespace purine::parallel
