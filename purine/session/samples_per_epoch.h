// How long an epoch of a graph's data is.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"

namespace purine {

/// Samples of an epoch that the graph's sources bring; all of them must agree. 0 if there are none or they
/// never end.
std::int64_t find_samples_per_epoch(Graph& graph);

}  // namespace purine
