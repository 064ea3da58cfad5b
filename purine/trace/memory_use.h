// How much of the planned memory holds something, as time goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/trace/timeline.h"

namespace purine::trace {

/// Bytes in use at a location: `bytes[i]` from `times[i]` on. Variables, which always are, don't count.
struct MemoryCurve {
  PlannedMemory planned;
  std::vector<std::int64_t> times;
  std::vector<std::int64_t> bytes;
};

/// A byte is in use from when the operator starts that makes a tensor there until all that read it within the
/// iteration have ended; tensors that share bytes count once. One curve for each location of the rank for
/// which the trace knows the plan.
std::vector<MemoryCurve> memory_over_time(const Timeline& timeline, std::size_t rank);

/// At most about `points` of a curve: of each stretch of time its least and its greatest value stay.
MemoryCurve thinned(const MemoryCurve& curve, std::size_t points);

}  // namespace purine::trace
