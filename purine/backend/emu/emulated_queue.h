// Queues and events of emulated devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "purine/backend/emu/emulated_device.h"
#include "purine/runtime/device.h"

namespace purine::emu {

/// Counts its marks: `recorded` when one is enqueued, `reached` when the queue comes to it.
class EmulatedEvent final : public Event {
 public:
  bool query() const override;

 private:
  friend class EmulatedQueue;
  struct State {
    std::mutex mutex;
    std::condition_variable reached_more;
    std::uint64_t recorded = 0;
    std::uint64_t reached = 0;
    bool failed = false;  // the queue that reached the last mark
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // commands on their way outlive the event
};

class EmulatedQueue final : public Queue {
 public:
  explicit EmulatedQueue(EmulatedDevice& device);
  EmulatedQueue(const EmulatedQueue&) = delete;
  EmulatedQueue& operator=(const EmulatedQueue&) = delete;
  /// Waits until all that was enqueued is done.
  ~EmulatedQueue() override;

  Device& device() override { return device_; }
  void launch(Work work) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  /// Addresses of any emulated device, or of the host, on either side. Takes the time that the device's link
  /// would.
  void copy(std::byte* destination, const std::byte* source, std::size_t bytes) override;
  void notify(CompletionListener& listener, std::uint64_t tag) override;

 private:
  void enqueue(std::function<void()> command);
  void run();

  EmulatedDevice& device_;
  NativeQueue native_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> commands_;
  bool closing_ = false;
  std::exception_ptr error_;  // of the queue's thread alone: once set, no work is done
  std::thread thread_;
};

}  // namespace purine::emu
