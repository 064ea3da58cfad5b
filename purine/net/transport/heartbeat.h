// When to give a sign of life, and when another's has been missing for too long.
#pragma once

#include <algorithm>
#include <chrono>

namespace purine::net {

/// A rank's own heartbeat and its watch over one other rank. Only time during which this rank itself was
/// awake counts as the other's silence: after a stop (SIGSTOP, a suspended machine) signs of life may have
/// come that it has not looked at yet.
class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  Heartbeat(Clock::duration stall_limit, Clock::time_point now)
      : limit_(stall_limit),
        interval_(std::min<Clock::duration>(std::chrono::seconds(1), stall_limit / 8)),
        sent_(now),
        heard_(now),
        turn_(now) {}

  /// To be called often: at least every quarter of the interval.
  void turn(Clock::time_point now) {
    const Clock::duration away = now - turn_;
    if (away > interval_) heard_ += away;
    turn_ = now;
  }
  /// True each time that a sign of life is due.
  bool due(Clock::time_point now) {
    if (now - sent_ < interval_) return false;
    sent_ = now;
    return true;
  }
  void heard(Clock::time_point now) { heard_ = now; }
  bool silent(Clock::time_point now) const { return now - heard_ > limit_; }

 private:
  Clock::duration limit_;
  Clock::duration interval_;
  Clock::time_point sent_;
  Clock::time_point heard_;
  Clock::time_point turn_;
};

}  // namespace purine::net
