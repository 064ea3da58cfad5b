// What freezing a rank's part needs to know of the whole graph.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/program/estimate.h"
#include "purine/program/fusion.h"

namespace purine::program {

/// A graph, looked through once for all ranks whose parts are frozen from it: a simulator freezes them all.
/// The graph must outlive it and stay as it is. Used by one thread at a time.
class WholeGraph {
 public:
  /// Verifies the graph.
  explicit WholeGraph(Graph& graph);
  WholeGraph(const WholeGraph&) = delete;
  WholeGraph& operator=(const WholeGraph&) = delete;

  Graph& graph() const { return graph_; }
  std::int32_t ranks() const { return static_cast<std::int32_t>(operator_begins_.size()) - 1; }
  /// The operators that a rank has a part in, ascending: those at it, and Copies from it. Left out are those
  /// that no variable's next value, no watched tensor and no side effect at any rank depends on.
  std::span<const std::uint32_t> operators_of(std::int32_t rank) const;
  const std::vector<Variable>& variables() const { return variables_; }
  /// Index among them of the variable whose current value a tensor is.
  std::uint32_t variable_of(Tensor tensor) const { return variable_of_[tensor.index()]; }
  /// Indices of the variables at a rank, ascending.
  std::span<const std::uint32_t> variables_of(std::int32_t rank) const;
  /// Whether a tensor depends on a variable that changes. What doesn't can be made before the last iteration
  /// has ended.
  bool changes(Tensor tensor) const;
  /// Which of the operators that are not left out run as one.
  const Fusions& fusions() const;
  /// `remaining_after` of the graph, kept for the rate that was last asked for.
  const std::vector<Remaining>& remaining(double network_bytes_per_second) const;

 private:
  Graph& graph_;
  std::vector<Variable> variables_;
  std::vector<std::uint32_t> variable_of_;      // by tensor; 0xffffffff where it is none
  std::vector<std::uint32_t> operator_begins_;  // by rank, and the end: into operators_
  std::vector<std::uint32_t> operators_;
  std::vector<std::uint32_t> variable_begins_;
  std::vector<std::uint32_t> variables_by_rank_;
  std::vector<bool> live_;              // by operator: it is not left out
  mutable std::vector<bool> changing_;  // these are made when they are first asked for
  mutable std::optional<Fusions> fusions_;
  mutable std::vector<Remaining> remaining_;
  mutable double remaining_rate_ = 0;
};

}  // namespace purine::program
