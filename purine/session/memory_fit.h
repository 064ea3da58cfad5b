// Graphs made to fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/session/runtime.h"
#include "purine/session/session.h"

namespace purine {

/// What had to be done to make a graph fit.
struct MemoryFit {
  /// The graph to run instead; null if the given one fits as it is. That one must outlive it.
  std::unique_ptr<Graph> graph;
  /// What each tensor of the given graph is in the other one, by index.
  std::vector<Tensor> tensors;
  /// Paths of the operators that run again for the backward pass.
  std::vector<std::string> operators;
  /// To be set in the session's options: where that isn't enough, storage is also reused sooner.
  std::uint32_t storage_distance = 0;
  std::size_t bytes_before = 0;  ///< planned for the given graph
  std::size_t bytes = 0;         ///< planned for what runs
};

/// Makes a graph whose steps need at most `limit` bytes, as Session::peak_bytes counts them, in each process:
/// of the ways to keep less (`recomputations`, purine/gradient/recompute.h), those with the best share of
/// bytes saved are taken first, each if the plan needs less with it, until it fits. If all of them are not
/// enough, the search begins anew with storage that is also reused sooner (SessionOptions::storage_distance),
/// which makes some operators wait for one another. Values are the same to the bit. Where several processes
/// run the graph, all call this, with the same limit, and do the same.
///
/// The memory of each attempt is planned as a session plans it, which takes some 5 ms for ResNet-50.
///
/// Throws Error if nothing fits: it tells what the graph needs, and the least that was found.
MemoryFit fit_memory(Runtime& runtime, Graph& graph, std::size_t limit, const SessionOptions& options = {});

}  // namespace purine
