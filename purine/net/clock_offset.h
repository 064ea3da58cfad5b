// How far the clocks of the ranks' hosts are apart.
#pragma once

#include <cstdint>

#include "purine/runtime/device.h"
#include "purine/runtime/endpoint.h"

namespace purine::net {

/// A rank's clock against that of rank 0, at a time. Nanoseconds.
struct ClockOffset {
  std::int64_t at = 0;      ///< by this rank's clock
  std::int64_t offset = 0;  ///< to be added to this rank's time, to have rank 0's
  std::int64_t error = 0;   ///< the offset is wrong by no more than this
};

/// Asks rank 0 for its time a few dozen times. The answer that took the shortest counts: rank 0 read its
/// clock between question and answer, most likely in the middle, so the error is at most half of that round
/// trip (Cristian, "Probabilistic clock synchronization", 1989). At rank 0 all are 0 but the time. A
/// collective call.
ClockOffset measure_clock_offset(Endpoint& endpoint, const Clock& clock);

}  // namespace purine::net
