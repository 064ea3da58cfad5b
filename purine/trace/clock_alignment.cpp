#include "purine/trace/clock_alignment.h"

#include <algorithm>
#include <map>
#include <utility>

namespace purine::trace {

std::vector<std::int64_t> moves_for_causality(int ranks, std::span<const ObservedMessage> messages) {
  std::map<std::pair<int, int>, std::int64_t> least;  // of each pair that exchanges anything
  for (const ObservedMessage& message : messages) {
    const std::int64_t early = message.sent - message.received;
    const auto [found, added] = least.try_emplace({message.from, message.to}, early);
    if (!added) found->second = std::max(found->second, early);
  }
  std::vector<std::int64_t> moves(static_cast<std::size_t>(ranks), 0);
  for (int round = 0; round < ranks; ++round) {
    for (const auto& [pair, early] : least) {
      const std::int64_t from = moves[static_cast<std::size_t>(pair.first)];
      std::int64_t& to = moves[static_cast<std::size_t>(pair.second)];
      to = std::max(to, from + early);
    }
  }
  const std::int64_t first = moves.empty() ? 0 : moves.front();
  for (std::int64_t& move : moves) move -= first;
  return moves;
}

}  // namespace purine::trace
