// What limits a link's rate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "purine/sim/virtual_time.h"

namespace purine::sim {

/// Lets bytes pass, one after the other, at a rate; after a rest, up to `burst` bytes of those that could
/// have passed meanwhile do so at once (the token bucket of RFC 2697). Example: 1 byte a nanosecond and a
/// burst of 100 bytes; 300 bytes at time 0 have passed at 200, and so have no burst left: 300 more at 240
/// have passed at 500, since 40 of them could have passed before.
class TokenBucket {
 public:
  TokenBucket(double bytes_per_second, double burst) : rate_(bytes_per_second), burst_(burst) {}

  /// When the last of these bytes has passed, whose first one comes at `first` and whose last one at `last`;
  /// they wait for those that were let through before.
  std::int64_t pass(std::size_t bytes, std::int64_t first, std::int64_t last) {
    first = std::max(first, free_at_);
    const std::int64_t rest = first - empty_at_;
    const std::int64_t spared = std::min(std::max<std::int64_t>(rest, 0), duration(burst_));
    const std::int64_t needs = duration(static_cast<double>(bytes));
    empty_at_ = std::max(empty_at_, first - spared) + needs;
    free_at_ = std::max({last, first, empty_at_});
    return free_at_;
  }

 private:
  std::int64_t duration(double bytes) const { return rate_ > 0 ? nanoseconds(bytes / rate_) : 0; }

  const double rate_;
  const double burst_;
  // The bucket has as many tokens as the time since `empty_at_` gives, and no more than `burst_`; it is full
  // at the beginning.
  std::int64_t empty_at_ = -(std::int64_t{1} << 60);
  std::int64_t free_at_ = 0;
};

}  // namespace purine::sim
