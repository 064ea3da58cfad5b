// How much of the time in which something moves is hidden by work.
#pragma once

#include <cstdint>

#include "purine/runtime/device.h"

namespace purine::sim {

/// What went on in a stretch of time. Times are nanoseconds.
struct Overlap {
  std::int64_t time = 0;        ///< that was measured
  std::int64_t computing = 0;   ///< of it, while any operator ran
  std::int64_t moving = 0;      ///< while anything moved
  std::int64_t overlapped = 0;  ///< of this, while an operator ran
  std::int64_t bytes = 0;       ///< that had moved at the end of their move

  std::int64_t exposed() const { return moving - overlapped; }
};

/// Measures it in virtual time, for a device or for one direction of a link.
class OverlapMeter {
 public:
  /// The clock must outlive it.
  explicit OverlapMeter(const Clock& clock) : clock_(&clock), since_(clock.now()) {}

  void operator_begins() { advance(), ++operators_; }
  void operator_ends() { advance(), --operators_; }
  void move_begins() { advance(), ++moves_; }
  void move_ends(std::int64_t bytes) { advance(), --moves_, moved(bytes); }
  void moved(std::int64_t bytes) { overlap_.bytes += bytes; }

  /// Since it was made, or last reset.
  Overlap overlap() {
    advance();
    return overlap_;
  }
  void reset() { advance(), overlap_ = {}; }

 private:
  void advance() {
    const std::int64_t passed = clock_->now() - since_;
    since_ += passed;
    overlap_.time += passed;
    if (operators_ > 0) overlap_.computing += passed;
    if (moves_ > 0) overlap_.moving += passed;
    if (operators_ > 0 && moves_ > 0) overlap_.overlapped += passed;
  }

  const Clock* clock_;
  std::int64_t since_;
  Overlap overlap_;
  int operators_ = 0;
  int moves_ = 0;
};

}  // namespace purine::sim
