// What a step waits for: the chain of operators, transfers and waits that its time consists of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "purine/trace/timeline.h"

namespace purine::trace {

/// Why the next stretch of a path could not begin earlier than where this one ends.
enum class Link : std::uint8_t {
  none,     ///< it is the last
  value,    ///< it reads what this one made
  storage,  ///< it takes over memory that this one used
  track,    ///< its worker or queue was busy with this one
  message,  ///< this one's rank sent what it receives, or had to have memory for it
  window,   ///< it had to wait until an iteration was over: only so many are in progress at a time
};

/// A stretch of the path. One that is idle belongs to the event that begins after it.
struct Stretch {
  EventId event;
  Use use = Use::idle;
  Link link = Link::none;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// From the end of the first whole iteration of the traces to the end of the last, or if there is just one
/// from its begin; stretches in order of time, without gaps or overlaps: each nanosecond is one stretch's.
struct CriticalPath {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t steps = 0;  ///< iterations that ended within
  std::vector<Stretch> stretches;

  /// Nanoseconds a step takes.
  double step_time() const {
    return steps > 0 ? static_cast<double>(end - begin) / static_cast<double>(steps) : 0;
  }
};

/// Walks back from the event that ended last. What an event had to wait for is, of all that it needs (values,
/// storage, its worker, a message's other end), that which ended last; the walk goes on there. Traces without
/// dependencies know of workers alone.
CriticalPath critical_path(const Timeline& timeline);

}  // namespace purine::trace
