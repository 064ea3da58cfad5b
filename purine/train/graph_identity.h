// What a graph computes, wherever it lies.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "purine/graph/graph.h"

namespace purine::train {

/// How many vertices of one kind a graph has, and a hash of what they are called and set to.
struct GraphPart {
  std::int64_t count = 0;
  std::uint64_t hash = 0;

  bool operator==(const GraphPart& other) const = default;
};

/// Equal for two graphs that compute the same from the same variables, whatever locations their vertices have
/// and whichever copies bring tensors from one to the other: a run may go on elsewhere. Kept in checkpoints.
struct GraphIdentity {
  std::uint64_t hash = 0;
  /// By types of operators, and of the graph's `variables`, `inputs` and `watched` tensors.
  std::map<std::string, GraphPart> parts = {};

  bool operator==(const GraphIdentity& other) const = default;
};

GraphIdentity identify(Graph& graph);

/// The first difference of two that are not equal, in words: `it has 3 conv2d operators, now there are 4`.
std::string difference(const GraphIdentity& before, const GraphIdentity& now);

}  // namespace purine::train
