// The lanes of a report's timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/trace/timeline.h"

namespace purine::trace {

/// A worker, a queue of a device, or one direction of the link to another rank. Messages overlap one another,
/// so that a lane may have several rows; the events of a row don't.
struct Lane {
  std::string name;
  int rows = 1;
};

/// An event's place, and its times as they are drawn.
struct Placed {
  std::size_t event = 0;  ///< into Trace::events
  int lane = 0;
  int row = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct LanesOfRank {
  std::vector<Lane> lanes;
  std::vector<Placed> events;  ///< in order of start
};

/// Places all events of a rank. Where a link has more messages at a time than `most_rows`, the last row shows
/// of each only what follows the one before.
LanesOfRank lanes_of(const Timeline& timeline, std::size_t rank, int most_rows = 4);

}  // namespace purine::trace
