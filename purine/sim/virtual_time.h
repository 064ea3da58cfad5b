// Time that passes only from one event to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "purine/runtime/device.h"

namespace purine::sim {

/// Something that is due at a time.
class TimedAction {
 public:
  virtual ~TimedAction() = default;
  virtual void act(std::uint64_t tag) = 0;
};

/// A clock and a heap of what is due: nothing waits, and the clock jumps from one action to the next. Actions
/// of the same time come in the order in which they were scheduled, so a simulation repeats itself exactly.
class VirtualTime final : public Clock {
 public:
  std::int64_t now() const override { return now_; }
  /// `time` is not before now; Error if it is more than 73 years from the begin. The action must outlive it.
  void schedule(std::int64_t time, TimedAction& action, std::uint64_t tag = 0);
  /// Goes to the next time at which something is due, and does the first of it; false if nothing is.
  bool advance();
  /// Actions done so far.
  std::uint64_t actions() const { return actions_; }

 private:
  struct Due {
    std::int64_t time;
    std::uint64_t sequence;
    TimedAction* action;
    std::uint64_t tag;
    /// For a heap whose top is the earliest.
    bool operator<(const Due& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  std::vector<Due> heap_;
  std::int64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t actions_ = 0;
};

/// Rounded to whole nanoseconds. Error if it is more than 104 days, which nothing that a step consists of can
/// take.
std::int64_t nanoseconds(double seconds);

}  // namespace purine::sim
