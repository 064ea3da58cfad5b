// A job's graph on the job's devices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"
#include "purine/parallel/whole_variable.h"
#include "purine/session/memory_fit.h"
#include "purine/train/parallel_section.h"

namespace purine::train {

/// The graph that a job's network, data and update are, and the one that runs: on one device the same, on
/// several what the job's scheme makes of it.
class PlacedGraph {
 public:
  /// Adds everything to the graph; computes at `device`.
  using Build = std::function<void(Graph& graph, Location device)>;

  /// Builds the graph and divides it as the scheme says. Where `like` is given, which is on the same setup,
  /// and the scheme follows Specs, the variables that both have lie as they do there.
  PlacedGraph(const ParallelSetup& setup, const Build& build, const PlacedGraph* like = nullptr);

  /// Makes the graph that runs fit into a limit of bytes in each process; see purine::fit_memory, which
  /// throws an Error if that can't be. What the session's options have to be for it is changed in them.
  void fit_memory(Runtime& runtime, std::size_t limit, SessionOptions& options);
  /// What that has done; without it nothing.
  const MemoryFit& memory_fit() const { return fit_; }
  /// The same in a line for people; empty where nothing was done.
  std::string memory_text() const;

  /// As it was written.
  Graph& written() { return *written_; }
  /// What a session takes.
  Graph& running() { return fit_.graph ? *fit_.graph : placed(); }
  /// What a tensor of the written graph is in the running one: Partitioned::at. A watched one is where rank 0
  /// has its value: for those that lie elsewhere the running graph has a copy at `0/cpu:0`.
  Tensor at(Tensor tensor) const;
  /// The written graph's variables, and where they lie in the running one.
  const std::vector<parallel::WholeVariable>& variables() const { return variables_; }
  /// True if sessions of both can work on the same variables: those of this graph are in the same pieces
  /// there, at the same ranks.
  bool can_share_variables_of(const PlacedGraph& other) const;

 private:
  Graph& placed() { return divided_ ? divided_->graph() : *written_; }

  std::unique_ptr<Graph> written_;  // at one address: the divided graph refers to it
  std::optional<parallel::Partitioned> divided_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // watched tensors that lie elsewhere, and those at rank 0
  std::vector<parallel::WholeVariable> variables_;
  MemoryFit fit_;
};

}  // namespace purine::train
