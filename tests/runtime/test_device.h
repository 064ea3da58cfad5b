// A device for tests: in-order queues that threads run, with random delays, and events between them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "purine/runtime/device.h"

namespace purine {

/// Failures are sticky: once work has thrown, the queue runs nothing more, and neither do queues that wait
/// for its events; all that they complete fails with the same exception.
class TestDevice final : public Device {
 public:
  /// Each piece of work is delayed by up to `longest_microseconds`.
  explicit TestDevice(std::uint64_t seed = 0, int longest_microseconds = 0)
      : seed_(seed), longest_microseconds_(longest_microseconds) {}

  Location location() const override { return {0, DeviceKind::emu, 0}; }
  std::unique_ptr<Queue> make_queue() override;
  std::unique_ptr<Event> make_event() override;
  std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* memory) override;
  std::size_t capacity() const override { return std::size_t{1} << 30U; }

 private:
  std::uint64_t seed_;
  int longest_microseconds_;
};

}  // namespace purine
