// Bringing a tensor from one way of lying on a mesh to another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/collectives.h"
#include "purine/parallel/spec.h"

namespace purine::parallel {

/// The pieces of one tensor by the location's index in the mesh; one that is not valid is no element.
using Pieces = std::vector<Tensor>;

/// Which elements of each dimension a location has of a tensor that is split so; empty ranges where none.
std::vector<Range> element_ranges(const Mesh& mesh, const Shape& whole, const Spec& spec, int location);

/// How partial tensors are summed over locations.
struct Reductions {
  AllReduce of_values;
  AllReduce of_gradients;
  Wire gradient_wire = {};  ///< of reduce-scatters, in which all_reduce has no part
};

/// Adds the vertices that bring tensors from one spec to another:
///   partial to replicated   all-reduce          split to replicated   all-gather
///   partial to split        reduce-scatter      split to split        all-to-all
///   replicated to split     slices
/// What varies is weighted by its share of the units, and then as partial. Sums are in the order of the mesh.
class Resharder {
 public:
  /// The graph, the mesh and the reductions must outlive it.
  Resharder(Graph& graph, const Mesh& mesh, const Reductions& reductions)
      : graph_(graph), mesh_(mesh), reductions_(reductions) {}

  /// `path` names the scope of what is added, below the name of what it is.
  Pieces convert(Pieces pieces, const TensorInfo& whole, Spec from, const Spec& to, std::string_view path,
                 bool is_gradient = false);
  /// The whole tensor at the first location alone.
  Tensor gather(Pieces pieces, const TensorInfo& whole, const Spec& from, std::string_view path);
  /// The pieces of a tensor that lies whole at some location.
  Pieces scatter(Tensor whole, const Spec& to, std::string_view path);

 private:
  struct Change;

  void convert_axis(Pieces& pieces, const Shape& whole, int axis, const Spec& from, const Placement& to,
                    std::string_view path, bool is_gradient);
  Pieces weighted(const Pieces& members, int axis, const Placement& from) const;
  Pieces all_reduce(const Pieces& members, const Change& change);
  Pieces reduce_scatter(const Pieces& members, const Change& change) const;
  Pieces all_gather(const Pieces& members, const Change& change) const;
  Pieces all_to_all(const Pieces& members, const Change& change) const;
  Pieces slices(const Pieces& members, const Change& change) const;
  Tensor assembled(const Pieces& members, const Change& change, Location at) const;

  Graph& graph_;
  const Mesh& mesh_;
  const Reductions& reductions_;
  std::int64_t all_reduces_ = 0;
};

}  // namespace purine::parallel
