// The cores of a host, which its workers share.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "purine/sim/virtual_time.h"

namespace purine::sim {

/// Work that runs at the same time shares cores, caches and memory. With n pieces of work on c cores, each
/// goes on at the speed 1 - (1 - a) (n - 1) / (c - 1) of one that is alone for 1 <= n <= c, where a is the
/// speed when all cores are busy; for n > c at a c / n. Example, c = 2 and a = 0.8: two pieces of 8 ms that
/// begin together end after 10 ms; if the second one begins 4 ms later, the first ends at 9 ms, when 4 of the
/// second's 8 are done, and the second at 13 ms.
///
/// Threads that serve the workers leave them the cores (`yield_to_workers`): their work waits until a core is
/// free, or until the scheduler's next turn, of which there is one at each multiple of `turn`; then it goes
/// first. Example, one core and turns of 4 ms: work begins at 0 and takes 10 ms alone, service of 1 ms that
/// is asked for at 2 ms is done at 5 ms, and the work at 11 ms. Without turns service is work like all other.
/// Work that has just taken a core that was free keeps it at turns that come within a slice from then: with a
/// slice of 5 ms the service of the example is done at 9 ms.
class Cores final : public TimedAction {
 public:
  /// Told when a piece of work is done.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void work_done(std::uint64_t tag) = 0;
  };

  /// The time must outlive it. `turn` and `slice` in nanoseconds; without turns (0) a slice means nothing.
  Cores(VirtualTime& time, int cores, double speed_when_all_busy, std::int64_t turn = 0,
        std::int64_t slice = 0);
  /// Begins work that takes so many nanoseconds alone.
  void run(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag);
  bool have_turns() const { return turn_ > 0; }
  /// The same of a thread that serves. `goes_on`: it is running. Then it keeps a core that works, since this
  /// is still its turn; but on a core that was free it makes way for a worker that it has woken.
  void serve(std::int64_t nanoseconds, Listener& listener, std::uint64_t tag, bool goes_on);

  void act(std::uint64_t tag) override;

 private:
  struct Job {
    double remaining;  // nanoseconds alone
    Listener* listener;
    std::uint64_t tag;
    bool goes_first = false;
  };

  /// Of work that goes first and of other work.
  struct Speeds {
    double first;
    double other;
    double of(const Job& job) const { return job.goes_first ? first : other; }
  };
  Speeds speeds() const;
  void begin(const Job& job);
  /// Sees to it that somebody looks whether service can begin.
  void schedule_service();
  void begin_service();
  /// Accounts for the time since the last change.
  void progress();
  void schedule_next();

  VirtualTime& time_;
  const int cores_;
  const double speed_when_all_busy_;
  const std::int64_t turn_;
  const std::int64_t slice_;
  std::vector<Job> jobs_;
  std::int64_t free_since_ = -1'000'000;  // when the last job that had the last core ended
  std::int64_t taken_at_ = 0;             // when work last took the last core that was free
  std::deque<Job> services_;              // that wait for a core
  std::int64_t next_look_ = 0;            // for one; 0: none is due
  std::int64_t since_ = 0;
  std::uint64_t generation_ = 0;  // of the schedule; actions of earlier ones mean nothing
};

}  // namespace purine::sim
