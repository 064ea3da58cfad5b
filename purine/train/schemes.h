// The schemes that a job can ask for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/mesh.h"
#include "purine/parallel/partition.h"
#include "purine/train/job.h"

namespace purine::train {

/// A way to divide a graph over devices, as a job names it.
struct Scheme {
  std::string_view name;   ///< `parallel.scheme`
  std::string_view title;  ///< for people: `data parallelism`
  /// The axis of the mesh that it needs, and along which all devices lie if the job has no mesh.
  std::string_view axis;
  /// Another axis that the mesh may have; empty if none.
  std::string_view other_axis;
  /// The keys of [parallel] that mean something to it, besides `scheme`, `devices` and, where it divides at
  /// all, `mesh` and `all_reduce`.
  std::vector<std::string_view> keys;
  /// True if it is parallel::partition with Specs: another graph can then be divided such that the variables
  /// that both have lie alike.
  bool follows_specs;
  /// Divides the graph for one device over a mesh of at least two; null where there is nothing to divide.
  parallel::Partitioned (*divide)(Graph& graph, const parallel::Mesh& mesh, const Job::Parallel& keys,
                                  const parallel::PartitionOptions& options);

  bool takes(std::string_view key) const;
  bool has_axis(std::string_view wanted) const {
    return wanted == axis || (!other_axis.empty() && wanted == other_axis);
  }
};

/// All of them. A new one is an entry here.
const std::vector<Scheme>& all_schemes();
/// The scheme of a name, which is one of them.
const Scheme& find_scheme(std::string_view name);

}  // namespace purine::train
