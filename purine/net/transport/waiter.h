// Waiting for the messages that one has begun.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "purine/runtime/device.h"

namespace purine::net {

/// Counts completions, for a caller that blocks.
class Waiter final : public CompletionListener {
 public:
  void completed(std::uint64_t, std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    ++count_;
    changed_.notify_all();  // with the lock: the waiter may go as soon as it sees the count
  }

  /// Waits for this many completions since the last call; throws the first error among them.
  void wait(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
    count_ -= count;
    if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

  /// True once there are as many, which `wait` then takes; false when the time is over.
  bool wait_for(int count, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::exception_ptr error_;
};

/// Waits for all of them, also where some fail: what they wait for may write to memory of the caller until
/// then. Throws the first error.
inline void wait_all(std::initializer_list<std::pair<Waiter*, int>> waits) {
  std::exception_ptr error;
  for (const auto& [waiter, count] : waits) {
    try {
      waiter->wait(count);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace purine::net
