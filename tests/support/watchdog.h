// A time limit for tests that could hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace purine {

#ifdef __SANITIZE_THREAD__
inline constexpr std::chrono::seconds watchdog_limit{110};  // all takes ten times as long
#else
inline constexpr std::chrono::seconds watchdog_limit{60};
#endif

/// Ends the process with a message, if it lives for too long.
class Watchdog {
 public:
  explicit Watchdog(std::function<std::string()> message = nullptr,
                    std::chrono::seconds limit = watchdog_limit)
      : message_(std::move(message)), thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, limit, [&] { return over_; })) return;
          std::fprintf(stderr, "time limit exceeded\n%s\n", message_ ? message_().c_str() : "");
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  std::function<std::string()> message_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace purine
