// Waiting for the messages that one has begun.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
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

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::exception_ptr error_;
};

}  // namespace purine::net
