// Where the elements of variables lie.
#pragma once

#include <string>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"

namespace purine::parallel {

/// A variable of the graph for one location, and the variables of the graph that runs which hold its
/// elements. It follows from the graphs alone: every process has the same, whatever lies at its own
/// locations.
struct WholeVariable {
  struct Piece {
    std::string path;  ///< of the variable that holds it: `@1/lenet/fc1/weight`
    Location location;
    std::vector<Range> ranges;  ///< the elements of each dimension of the whole
  };

  std::string path;
  TensorInfo info;
  /// In the order of the mesh. Pieces of the same elements are replicas of each other; the different ones
  /// make up the whole without overlapping.
  std::vector<Piece> pieces;

  /// Numbers of pieces that make up the whole: of replicas the first.
  std::vector<std::size_t> distinct() const;
};

/// The variables of a graph that was not divided, each its own only piece.
std::vector<WholeVariable> whole_variables(Graph& graph);
/// The variables of a graph, divided.
std::vector<WholeVariable> whole_variables(Graph& graph, const Partitioned& partitioned);

}  // namespace purine::parallel
