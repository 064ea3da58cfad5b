// The flat arrays of a graph.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "purine/graph/graph.h"

namespace purine {

/// A graph's own arrays, for the few that need more than handles offer: checks that trust nothing, and
/// transformations that map every vertex. Whoever changes them answers for what `verify` checks.
struct GraphRecords {
  using Name = Graph::Name;
  using TensorRecord = Graph::TensorRecord;
  using OperatorRecord = Graph::OperatorRecord;
  using VariableRecord = Graph::VariableRecord;
  using InputRecord = Graph::InputRecord;
  using NameHash = Graph::NameHash;
  static constexpr std::uint32_t none = Graph::none;

  explicit GraphRecords(Graph& graph)
      : tensors(graph.tensors_),
        operators(graph.operators_),
        operator_inputs(graph.operator_inputs_),
        variables(graph.variables_),
        inputs(graph.inputs_),
        watched(graph.watched_),
        scopes(graph.scopes_),
        texts(graph.texts_),
        infos(graph.infos_),
        locations(graph.locations_) {}

  std::vector<TensorRecord>& tensors;
  std::vector<OperatorRecord>& operators;
  std::vector<std::uint32_t>& operator_inputs;
  std::vector<VariableRecord>& variables;
  std::vector<InputRecord>& inputs;
  std::vector<std::uint32_t>& watched;
  std::vector<Name>& scopes;
  std::deque<std::string>& texts;
  std::deque<TensorInfo>& infos;
  std::vector<Location>& locations;

  /// Gives `to`, which must be empty, all names and scopes of `from`, and the numbers of its variables and
  /// inputs; their records, tensors and operators are the caller's to add.
  static void copy_names(const Graph& from, Graph& to);
  static std::uint32_t intern(Graph& graph, const TensorInfo& info) { return graph.intern_info(info); }
  static std::uint32_t intern(Graph& graph, Location location) { return graph.intern_location(location); }
};

}  // namespace purine
