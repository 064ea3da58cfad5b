// How much is given to a link at a time, by what it carries.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace purine::net {

/// What has been handed over can't be passed by what is more urgent, and a link rests when nothing has been.
/// The thread of an endpoint, where a worker has the core, may look no more than every 4 ms (a tick of the
/// system's scheduler): so long what has been handed over should last, and little longer.
struct Pace {
  std::size_t chunk_bytes = 0;   ///< that a large message is sent in at a time: half of that
  std::size_t unsent_bytes = 0;  ///< that the system keeps for each peer until the link is free
};

inline constexpr std::size_t smallest_chunk = std::size_t{64} << 10U;
inline constexpr std::size_t largest_chunk = std::size_t{1} << 20U;

/// Example: 1 Gbit/s gives chunks of 256 KiB and 600 kB unsent.
inline Pace pace_of(double bytes_per_second) {
  constexpr double seconds = 0.005;
  constexpr double largest_unsent = 1e9;
  const auto unsent = static_cast<std::size_t>(
      std::clamp(seconds * bytes_per_second, static_cast<double>(smallest_chunk), largest_unsent));
  return {std::clamp(std::bit_floor(unsent / 2), smallest_chunk, largest_chunk), unsent};
}

}  // namespace purine::net
