// The cores of a host, which its workers share.
#pragma once

#include <cstdint>
#include <vector>

#include "purine/sim/virtual_time.h"

namespace purine::sim {

/// Work that runs at the same time shares cores, caches and memory. With n pieces of work on c cores, each
/// goes on at the speed 1 - (1 - a) (n - 1) / (c - 1) of one that is alone for 1 <= n <= c, where a is the
/// speed when all cores are busy; for n > c at a c / n. Example, c = 2 and a = 0.8: two pieces of 8 ms that
/// begin together end after 10 ms; if the second one begins 4 ms later, the first ends at 9 ms, when 4 of the
/// second's 8 are done, and the second at 13 ms.
class Cores final : public TimedAction {
 public:
  /// Told when a piece of work is done.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void work_done(std::uint64_t tag) = 0;
  };

  /// The time must outlive it.
  Cores(VirtualTime& time, int cores, double speed_when_all_busy);
  /// Begins work that takes so many nanoseconds alone.
  void run(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag);

  void act(std::uint64_t tag) override;

 private:
  struct Job {
    double remaining;  // nanoseconds alone
    Listener* listener;
    std::uint64_t tag;
  };

  double speed() const;
  /// Accounts for the time since the last change.
  void progress();
  void schedule_next();

  VirtualTime& time_;
  const int cores_;
  const double speed_when_all_busy_;
  std::vector<Job> jobs_;
  std::int64_t since_ = 0;
  std::uint64_t generation_ = 0;  // of the schedule; actions of earlier ones mean nothing
};

}  // namespace purine::sim
