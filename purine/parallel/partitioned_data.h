// What is inside of Partitioned, for those who make one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"
#include "purine/parallel/plan.h"
#include "purine/parallel/reshard.h"

namespace purine::parallel {

/// The number of a piece that isn't there.
inline constexpr std::uint32_t no_piece = 0xffffffffU;

/// One way in which a tensor lies; by location of the divided mesh the number of the piece in the new graph,
/// or no_piece.
struct Version {
  Spec spec;
  std::vector<std::uint32_t> pieces;
};

struct Partitioned::Data {
  Data(const Mesh& mesh_, const Mesh& divided_) : mesh(mesh_), divided(divided_) {}

  Mesh mesh;     ///< the user's
  Mesh divided;  ///< what specs and pieces go by: `mesh`, or micro-batches and samples of a pipeline
  Graph graph;
  const Graph* from = nullptr;
  Plan plan;
  std::vector<std::vector<Version>> versions;           ///< by tensor; the first is as the plan says
  std::vector<std::pair<std::uint32_t, Tensor>> roots;  ///< inputs and watched tensors, whole
};

bool is_whole(const Spec& spec);
/// The path as the name of a scope or operator: a second output's `split:1` is `split.1`.
std::string name_of(Tensor tensor);
/// The host whose memory a location's data come from.
Location host_of(Location location);
/// How an option set says that partial tensors are summed. Throws Error if it contradicts itself.
Reductions reductions_of(const PartitionOptions& options);
/// How a variable's initial value is divided. Throws Error if it can't be.
std::vector<Division> initial_divisions(const Mesh& mesh, Variable variable, const Spec& spec);
/// Where every piece of an operator makes the same result, locations without a piece get it from one that
/// has.
void complete_pieces(const Mesh& mesh, std::vector<Tensor>& pieces, const Division& division, int output,
                     int axis);
/// The number of samples of an iteration, if the graph has samples.
std::optional<std::int64_t> samples_of(Graph& graph);
/// Throws Error unless everything of the graph is at one location and nothing is a piece.
void check_is_whole(Graph& graph);

}  // namespace purine::parallel
