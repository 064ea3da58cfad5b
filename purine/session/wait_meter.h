// How much of the time training waits for data.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace purine {

/// Sums up the time during which data is being brought in and nothing else runs. Counts of what runs change
/// with every operator; the clock is read only where nothing else begins or ends to run.
class WaitMeter {
 public:
  /// Nanoseconds of a clock that never goes back; may be called by any thread.
  using Now = std::function<std::int64_t()>;

  explicit WaitMeter(Now now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); })
      : now_(std::move(now)), idle_since_(now_()), since_(now_()) {}

  /// Lives while a part of an operator runs.
  class Scope {
   public:
    Scope(WaitMeter& meter, bool brings_data) : meter_(meter), brings_data_(brings_data) {
      if (brings_data_) {
        meter_.data_running_.fetch_add(1, std::memory_order_relaxed);
        meter_.data_in_gap_.store(true, std::memory_order_relaxed);
      } else if (meter_.running_.fetch_add(1, std::memory_order_relaxed) == 0) {
        meter_.end_gap();
      }
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (brings_data_) {
        meter_.data_running_.fetch_sub(1, std::memory_order_relaxed);
      } else if (meter_.running_.fetch_sub(1, std::memory_order_relaxed) == 1) {
        meter_.begin_gap();
      }
    }

   private:
    WaitMeter& meter_;
    bool brings_data_;
  };

  /// The share since the last call or reset, at most 1. Of a gap that is open, what lies before the call
  /// counts now, and the rest later.
  double share() {
    const std::int64_t time = now_();
    std::int64_t begin = gap_begin_.load(std::memory_order_relaxed);
    if (begin != 0 && running_.load(std::memory_order_relaxed) == 0 &&
        gap_begin_.compare_exchange_strong(begin, time, std::memory_order_relaxed)) {
      add_gap(begin, time);
    }
    const std::int64_t whole = time - since_.exchange(time, std::memory_order_relaxed);
    const std::int64_t waited = waited_.exchange(0, std::memory_order_relaxed);
    return whole > 0 ? std::min(static_cast<double>(waited) / static_cast<double>(whole), 1.0) : 0;
  }
  /// For how long nothing has run, not even what brings data, in seconds.
  double idle_seconds() const {
    if (running_.load(std::memory_order_relaxed) > 0 || data_running_.load(std::memory_order_relaxed) > 0) {
      return 0;
    }
    return static_cast<double>(now_() - idle_since_.load(std::memory_order_relaxed)) * 1e-9;
  }
  /// Begins anew, while nothing runs: what comes first may be a wait for data.
  void reset() {
    begin_gap();
    waited_.store(0, std::memory_order_relaxed);
    since_.store(gap_begin_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  void begin_gap() {
    data_in_gap_.store(data_running_.load(std::memory_order_relaxed) > 0, std::memory_order_relaxed);
    const std::int64_t time = now_();
    gap_begin_.store(time, std::memory_order_relaxed);
    idle_since_.store(time, std::memory_order_relaxed);
  }
  void end_gap() {
    const std::int64_t begin = gap_begin_.exchange(0, std::memory_order_relaxed);
    if (begin != 0) add_gap(begin, now_());
  }
  void add_gap(std::int64_t begin, std::int64_t end) {
    if (data_in_gap_.load(std::memory_order_relaxed)) {
      waited_.fetch_add(end - begin, std::memory_order_relaxed);
    }
  }

  const Now now_;
  std::atomic<int> running_{0};       // parts of operators that bring no data
  std::atomic<int> data_running_{0};  // parts of those that do
  std::atomic<bool> data_in_gap_{false};
  std::atomic<std::int64_t> gap_begin_{0};
  std::atomic<std::int64_t> idle_since_;
  std::atomic<std::int64_t> waited_{0};
  std::atomic<std::int64_t> since_;
};

}  // namespace purine
