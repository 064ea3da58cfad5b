// How a tensor lies on a mesh.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/mesh.h"

namespace purine::parallel {

/// How a tensor lies along one axis of a mesh.
struct Placement {
  enum class Kind : std::uint8_t {
    replicated,  ///< every coordinate has it
    split,       ///< every coordinate has some of the elements of a dimension, in order; perhaps none
    partial,     ///< it is the sum of what the coordinates have
    varying,     ///< every coordinate has its own approximation; their mean, weighted by units, stands for it
  };
  Kind kind = Kind::replicated;
  int dimension = 0;
  /// What is divided: the dimension has a whole number of elements a unit. 0: its elements one by one. With
  /// one unit, one coordinate has it all. `varying` are weighted by their share of the units.
  std::int64_t units = 0;
  /// The coordinate that has the first units; the others follow, around the axis.
  int first = 0;

  bool is_replicated() const { return kind == Kind::replicated; }
  bool is_split() const { return kind == Kind::split; }
  bool operator==(const Placement& other) const = default;
};

inline Placement replicated() {
  return {};
}
/// Divided along a dimension; see Placement.
inline Placement split(int dimension, std::int64_t units = 0, int first = 0) {
  return {Placement::Kind::split, dimension, units, first};
}
/// All at one coordinate of the axis. The tensor has a dimension 0.
inline Placement at_coordinate(int coordinate) {
  return split(0, 1, coordinate);
}
inline Placement partial() {
  return {Placement::Kind::partial};
}

/// Which of the units of something split or varying a coordinate has.
Range unit_range(const Mesh& mesh, int axis, const Placement& placement, int coordinate);

/// A placement for each axis of a mesh, in their order.
using Spec = std::vector<Placement>;

/// `data: split 0, model: replicated`.
std::string text(const Mesh& mesh, const Spec& spec);

/// What a user says of a graph's tensors before it is divided; what is not said is chosen, and variables and
/// inputs of which nothing is said are replicated. (An optimiser's state lies as its variable does.)
class Specs {
 public:
  explicit Specs(const Mesh& mesh) : mesh_(mesh) {}

  const Mesh& mesh() const { return mesh_; }
  /// Sets how a tensor lies along one axis; it is replicated along those that aren't set. A variable or an
  /// input is replicated or split; the result of an operator is brought to it right after the operator.
  /// Throws Error for a dimension that the tensor doesn't have, units that don't divide it, and an axis that
  /// doesn't exist.
  Specs& set(Tensor tensor, std::string_view axis, Placement placement);
  /// Sets how it lies along all axes.
  Specs& set_all(Tensor tensor, const Spec& spec);
  /// What data sources bring, and every input whose leading dimension is the batch, is split along its
  /// leading dimension.
  Specs& split_samples(Graph& graph, std::string_view axis);
  /// Null if nothing was said of the tensor.
  const Spec* find(Tensor tensor) const;
  bool empty() const { return specs_.empty(); }
  /// By the tensor's number.
  const std::map<std::uint32_t, Spec>& all() const { return specs_; }

 private:
  Mesh mesh_;
  std::map<std::uint32_t, Spec> specs_;
};

}  // namespace purine::parallel
