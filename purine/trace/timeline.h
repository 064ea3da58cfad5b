// The traces of a run's ranks on one clock, with the links between their events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "purine/trace/trace.h"

namespace purine::trace {

/// An operator event of one of several traces.
struct EventId {
  std::size_t rank = 0;   ///< into Timeline::ranks
  std::size_t index = 0;  ///< into Trace::events

  auto operator<=>(const EventId& other) const = default;
};

/// What a stretch of time on a path was used for.
enum class Use : std::uint8_t {
  compute,
  data,      ///< reading and preparing samples
  copy,      ///< between devices of one host
  transfer,  ///< between ranks
  idle,      ///< nothing of it ran: on the way from one operator to the next
};

/// The traces must outlive it, and have the times of one clock.
class Timeline {
 public:
  explicit Timeline(std::span<const Trace> ranks);

  std::span<const Trace> ranks() const { return ranks_; }
  const Trace& trace(EventId id) const { return ranks_[id.rank]; }
  const OperatorEvent& event(EventId id) const { return ranks_[id.rank].events[id.index]; }
  const OperatorLabel& label(EventId id) const { return trace(id).operators[event(id).op]; }
  Use use(EventId id) const;
  /// When it was not only handed over but went: not before what it needs was there, what was before it on its
  /// queue had ended, or, between ranks, both ends were ready.
  std::int64_t start(EventId id) const { return starts_[id.rank][id.index]; }

  /// The part of an execution that ended last; none if the trace has none.
  std::optional<EventId> last_part(std::size_t rank, std::uint32_t op, std::int64_t iteration) const;
  /// What ended before on the same track, as the last.
  std::optional<EventId> before_on_track(EventId id) const;
  /// The other end of a message.
  std::optional<EventId> other_end(EventId id) const;

  /// The iterations that are whole in all traces: first and last.
  std::pair<std::int64_t, std::int64_t> iterations() const { return {first_iteration_, last_iteration_}; }
  /// The most iterations that were in progress at a time.
  std::int64_t iterations_in_progress() const;
  /// What of an iteration ended last, over all ranks; none if it has none.
  std::optional<EventId> end_of(std::int64_t iteration) const;
  /// Tracks that operators compute on: workers and queues of kernels. By rank. Where there are accelerators,
  /// workers that compute nothing with floating-point numbers are none of them.
  const std::vector<std::vector<char>>& computes() const { return computes_; }

 private:
  void index_executions(std::size_t rank);
  void index_tracks(std::size_t rank);
  void index_messages();
  void find_iterations();
  void find_starts();

  std::span<const Trace> ranks_;
  std::vector<std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t>> last_parts_;
  std::vector<std::vector<std::size_t>> before_;  // by rank and event; its own index if there is none
  std::map<EventId, EventId> other_ends_;
  std::vector<std::vector<std::int64_t>> starts_;
  std::vector<std::vector<char>> computes_;
  std::map<std::int64_t, EventId> ends_;  // of iterations
  std::int64_t first_iteration_ = 0;
  std::int64_t last_iteration_ = -1;
};

}  // namespace purine::trace
