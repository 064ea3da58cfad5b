// How often the thread of an endpoint looks at its messenger.
#pragma once

#include <algorithm>
#include <chrono>

namespace purine::net {

/// Pauses between looks grow with the time in which nothing has happened, so that looking takes a few percent
/// of a core, and what comes soon is seen soon. While a message is on its way, its chunks end so often that
/// the buffers of sockets last for a pause.
inline constexpr std::chrono::microseconds shortest_pause{20};
inline constexpr std::chrono::microseconds longest_pause{1000};

/// The pause before the next look.
template <typename Duration>
Duration pause_after(Duration since_last_event) {
  return std::clamp<Duration>(since_last_event / 2, shortest_pause, longest_pause);
}

}  // namespace purine::net
