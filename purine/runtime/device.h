// What the dispatcher needs of a device that works on its own: queues, events, memory and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "purine/core/location.h"

namespace purine {

/// Time in nanoseconds from a fixed, arbitrary origin. A simulated device brings its own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  std::int64_t now() const override;
};

/// A mark in a queue that other queues can wait for (cudaEvent_t). Recording it again moves the mark.
class Event {
 public:
  virtual ~Event() = default;
  /// True if all work before the last recorded mark is done, or none was recorded (cudaEventQuery).
  virtual bool query() const = 0;
};

/// What work ends with that did nothing wrong itself: what its queue did before it has failed, or what a
/// queue did that it waited for.
class QueueFailed final : public std::exception {
 public:
  const char* what() const noexcept override { return "earlier work of a device has failed"; }
  static bool is(const std::exception_ptr& error);
};

/// Told that a queue has reached a point.
class CompletionListener {
 public:
  virtual ~CompletionListener() = default;
  /// Called once, from any thread, with the tag that was handed over. `error` is set if the queue's work
  /// failed before that point: the first time it is what the work threw; all later work of that queue, and of
  /// those that wait for its events, then ends with QueueFailed (as with CUDA's sticky errors).
  virtual void completed(std::uint64_t tag, std::exception_ptr error) = 0;
};

/// One piece of work for a queue.
struct Work {
  /// Does the work. A CUDA queue calls it at once with its native stream, and it enqueues kernels there; an
  /// emulated queue calls it on the queue's own thread (with nullptr); a simulated one never calls it.
  std::function<void(void* native_queue)> run;
  double seconds = 0;  ///< the estimated duration, which a simulated queue takes for the real one
};

class Device;

/// An in-order stream of work on a device (cudaStream_t). No method blocks; they are called by one thread at
/// a time. What can't be enqueued throws.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Device& device() = 0;
  virtual void launch(Work work) = 0;
  /// Marks the work enqueued so far (cudaEventRecord).
  virtual void record(Event& event) = 0;
  /// Later work waits for the event's last mark (cudaStreamWaitEvent).
  virtual void wait(Event& event) = 0;
  /// Copies bytes; either side may be host memory (cudaMemcpyAsync with cudaMemcpyDefault).
  virtual void copy(std::byte* destination, const std::byte* source, std::size_t bytes) = 0;
  /// Tells the listener when the work enqueued so far is done (cudaLaunchHostFunc, or a poller of events).
  virtual void notify(CompletionListener& listener, std::uint64_t tag) = 0;
};

/// An accelerator, real or not.
class Device {
 public:
  virtual ~Device() = default;
  virtual Location location() const = 0;
  virtual std::unique_ptr<Queue> make_queue() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Memory of the device, aligned to 256 bytes (cudaMalloc); throws Error if there is not enough.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void deallocate(std::byte* memory) = 0;
  /// Bytes of memory that can be allocated in all.
  virtual std::size_t capacity() const = 0;
};

}  // namespace purine
