// What the ranks of a run agree on before it begins.
#pragma once

#include <cstdint>
#include <string>

#include "purine/graph/graph.h"
#include "purine/runtime/endpoint.h"

namespace purine {

/// Compares version, seed and graph over all ranks, by hashes. Where they differ, all ranks throw the same
/// Error, which names the first vertex that differs, what it is at rank 0 and at the first rank where it is
/// something else. A collective call.
void compare_graphs(Endpoint& endpoint, Graph& graph, std::uint64_t seed);

/// Throws the same Error at all ranks unless they all say the same: "rank 0 … , rank 2 …". A collective call.
void compare_words(Endpoint& endpoint, const std::string& words, std::string_view hint);

}  // namespace purine
