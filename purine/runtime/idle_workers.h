// How workers wait for work without losing a wake-up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "purine/runtime/pause.h"

namespace purine {

/// Workers that have nothing to do search for a moment and then sleep. Whoever makes work visible calls
/// `notify`, which wakes one sleeper unless somebody searches already; a worker that finds work and sees more
/// calls `notify` too, so waking spreads as far as there is work.
///
/// No wake-up is lost. All accesses named here are sequentially consistent, so they have one order. A
/// notifier first inserts, then reads the state; a worker first leaves the searchers, then looks for work
/// once more. If the notifier's read comes after the worker left, it sees a sleeper (or a searcher that has
/// still to leave) and acts; if it comes before, the worker's last look comes after the insertion and sees
/// the work.
class IdleWorkers {
 public:
  /// Each worker searches `spins` times before it sleeps.
  explicit IdleWorkers(int spins) : spins_(spins) {}

  /// Call after work was made visible.
  void notify() {
    std::uint64_t state = state_.load();
    do {
      if (sleepers(state) == 0 || searchers(state) != 0) return;
    } while (!state_.compare_exchange_weak(state, state - sleeper + searcher));
    wake();
  }

  /// Waits until `find()` returns true, and then returns true; returns false after `close`. `visible()`
  /// tells, without taking anything, whether there is work. After true the caller notifies if it sees more
  /// work.
  template <typename Find, typename Visible>
  bool wait(Find find, Visible visible) {
    const bool crowded = searchers(state_.fetch_add(searcher)) > 0;
    int spins = crowded ? 1 : spins_;
    while (!closed_.load()) {
      for (int i = 0; i < spins; ++i) {
        if (find()) {
          state_.fetch_sub(searcher);
          return true;
        }
        pause_briefly();
      }
      state_.fetch_add(sleeper - searcher);
      if (!visible() || !stay_awake()) sleep();
      spins = spins_;
    }
    return false;
  }

  /// Ends all waiting, for good.
  void close();

 private:
  static constexpr std::uint64_t sleeper = 1;
  static constexpr std::uint64_t searcher = std::uint64_t{1} << 32U;
  static std::uint64_t sleepers(std::uint64_t state) { return state & 0xffffffffU; }
  static std::uint64_t searchers(std::uint64_t state) { return state >> 32U; }

  // Turns one sleeper, which is not asleep yet, back into a searcher; false if a notifier did so already.
  bool stay_awake();
  // Returns as a searcher.
  void sleep();
  void wake();

  const int spins_;
  // Threads in `wait` are searchers, or sleepers, or (between a notifier's exchange and their return from
  // sleep) hold a permit and count as searchers already.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::condition_variable permitted_;
  std::uint64_t permits_ = 0;
};

}  // namespace purine
