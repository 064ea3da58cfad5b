// Questions to a trace: what took the time, what ran at the same time, who waited.
//
// An execution is one operator in one iteration; its parts are events of their own. Times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/trace/trace.h"

namespace purine::trace {

/// All work of one type of operator.
struct TypeTotal {
  std::string type;
  std::size_t executions = 0;
  std::size_t events = 0;  ///< parts count one each
  std::int64_t time = 0;   ///< summed over events, also those at the same time
  double share = 0;        ///< of the time of all types
};

/// The types of a trace, the one that took the most time first.
std::vector<TypeTotal> totals_by_type(const Trace& trace);

/// How much of the trace's time a track (a worker, a queue) ran operators.
struct TrackUsage {
  std::string name;
  std::int64_t busy = 0;
  std::int64_t waiting = 0;  ///< the rest, from the first event of the trace to the end of the last
  double busy_share = 0;
};

/// Every track of the trace, in order.
std::vector<TrackUsage> track_usage(const Trace& trace);

/// How the time from the first operator event's begin to the last one's end was used.
struct TimeUsage {
  std::int64_t total = 0;
  std::int64_t waiting = 0;  ///< nothing ran at all
  double parallelism = 0;    ///< events that ran at the same time, on average over the time when any ran
};
TimeUsage time_usage(const Trace& trace);

/// Chooses operators, by their label.
using Selector = std::function<bool(const OperatorLabel&)>;
/// The operator of a path, and all operators of a scope of that path
/// (`googlenet/inception_3a/branch_1`); of the empty path, all.
Selector within(std::string_view path);
/// The operators of a type.
Selector of_type(std::string_view type);

/// Time in which a selected operator ran and no other one: what the selected ones (copies, data loading) cost
/// though others could have run meanwhile.
std::int64_t exposed_time(const Trace& trace, const Selector& selected);

/// Two events of different executions whose times overlap.
struct Overlap {
  std::size_t first = 0;  ///< into Trace::events; began earlier, or is listed earlier
  std::size_t second = 0;
  std::int64_t time = 0;
};

/// All pairs of events that ran at the same time, one of `a` and the other of `b`, which may both choose the
/// same operators. Parts of one execution don't count as two.
std::vector<Overlap> overlaps(const Trace& trace, const Selector& a, const Selector& b);

/// True if ever an operator of `a` ran at the same time as another one of `b`.
bool ran_at_the_same_time(const Trace& trace, const Selector& a, const Selector& b);

/// Where an iteration meets the next one.
struct IterationOverlap {
  std::int64_t iteration = 0;       ///< t; the next is t + 1
  std::uint32_t last_operator = 0;  ///< of t: the one that ended last
  std::uint32_t next_operator = 0;  ///< of t + 1: the one that began first
  std::int64_t time = 0;  ///< from the begin of that one to the end of this one; above 0: they overlap
};

/// For every iteration t of the trace whose t + 1 is in it too.
std::vector<IterationOverlap> iteration_overlaps(const Trace& trace);

/// A text for people that answers all of these: totals by type, use of the tracks, waiting, overlap of
/// iterations.
std::string report(const Trace& trace);

}  // namespace purine::trace
