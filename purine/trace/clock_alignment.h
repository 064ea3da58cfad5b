// One clock for the traces of several ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace purine::trace {

/// A message as both ends saw it, each by its own clock. Nanoseconds.
struct ObservedMessage {
  int from = 0;  ///< rank
  int to = 0;
  std::int64_t sent = 0;      ///< when the sender handed it over
  std::int64_t received = 0;  ///< when all of it had come
};

/// What to add to the times of each rank, so that no message is received before it was sent: the least that
/// does, with nothing added at rank 0. Clocks that were compared before are off by less than a round trip,
/// and need it rarely.
///
/// Each message says that its receiver is to be moved by at least `sent - received` more than its sender; the
/// least such moves are longest paths over the ranks (Bellman and Ford's algorithm). Clocks of different
/// speed can ask for the impossible, a circle of moves that only grow: then some message stays wrong, and
/// the moves are those of as many rounds as there are ranks.
std::vector<std::int64_t> moves_for_causality(int ranks, std::span<const ObservedMessage> messages);

}  // namespace purine::trace
