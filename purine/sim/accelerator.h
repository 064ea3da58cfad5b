// Simulated accelerators: queues, events, and the links to their host.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "purine/runtime/device.h"
#include "purine/sim/overlap_meter.h"
#include "purine/sim/virtual_time.h"

namespace purine::sim {

/// One direction of a connection. What moves through it takes turns.
class Link {
 public:
  Link(const Clock& clock, double bytes_per_second, double latency)
      : meter(clock), bytes_per_second_(bytes_per_second), latency_(latency) {}

  /// How long bytes take from one end of a way to the other: the latencies of all links, and the slowest.
  static std::int64_t duration(const std::vector<Link*>& way, std::int64_t bytes);
  /// The first time at which all links of a way are free, not before `now`.
  static std::int64_t first_free(const std::vector<Link*>& way, std::int64_t now);
  void occupy_until(std::int64_t time) { free_at_ = time; }

  OverlapMeter meter;

 private:
  double bytes_per_second_;
  double latency_;
  std::int64_t free_at_ = 0;
};

/// What a simulated device is like.
struct AcceleratorOptions {
  std::size_t memory_bytes = 0;
  /// What its host needs for each operator that it launches, one after the other.
  double launch_seconds = 0;
};

class SimulatedDevice;

/// Told when something on a device was completed, before the listener of the queue is.
class Activity {
 public:
  virtual ~Activity() = default;
  virtual void something_completed() = 0;
};

/// A mark in a simulated queue.
class SimulatedEvent final : public Event {
 public:
  bool query() const override { return reached_ == recorded_; }

 private:
  friend class SimulatedQueue;
  std::uint64_t recorded_ = 0;
  std::uint64_t reached_ = 0;
  std::vector<class SimulatedQueue*> waiting_;
};

/// An in-order queue in virtual time. Work takes the seconds that it says, but begins no earlier than its
/// host has launched it; its function is never called.
class SimulatedQueue final : public Queue, public TimedAction {
 public:
  explicit SimulatedQueue(SimulatedDevice& device);

  Device& device() override;
  void launch(Work work) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  /// Nothing moves without a way: see `move`.
  void copy(std::byte* destination, const std::byte* source, std::size_t bytes) override;
  void notify(CompletionListener& listener, std::uint64_t tag) override;
  /// Moves bytes along a way, whose links have them one move at a time.
  void move(std::vector<Link*> way, std::int64_t bytes);

  void act(std::uint64_t tag) override;

 private:
  struct Item {
    enum class Kind : std::uint8_t { work, move, record, wait, notify };
    Kind kind = Kind::work;
    std::int64_t launched_at = 0;
    std::int64_t amount = 0;  // nanoseconds, bytes, or the event's mark
    SimulatedEvent* event = nullptr;
    CompletionListener* listener = nullptr;
    std::uint64_t tag = 0;
    std::vector<Link*> way = {};
  };
  enum class State : std::uint8_t { idle, launching, working, moving, waiting };

  void add(Item item);
  /// Goes on until something takes time.
  void proceed();
  bool begin(const Item& item);

  SimulatedDevice& device_;
  std::deque<Item> items_;
  State state_ = State::idle;
};

/// A device in virtual time: any number of queues, and one launcher on its host.
class SimulatedDevice final : public Device {
 public:
  /// All must outlive it.
  SimulatedDevice(VirtualTime& time, Location location, const AcceleratorOptions& options,
                  Activity* activity = nullptr)
      : meter(time), time_(time), location_(location), options_(options), activity_(activity) {}

  Location location() const override { return location_; }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<SimulatedQueue>(*this); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<SimulatedEvent>(); }
  /// There is no memory to be had: what would lie in it is planned, not made. Throws Error.
  std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* memory) override;
  std::size_t capacity() const override { return options_.memory_bytes; }

  /// Meters that are told of its operators, besides its own: those of links, and of what it is a part of.
  void tell(OverlapMeter& other) { told_.push_back(&other); }

  OverlapMeter meter;

 private:
  friend class SimulatedQueue;
  /// When the next launch has been made.
  std::int64_t launch();
  void operator_begins();
  void operator_ends();

  VirtualTime& time_;
  const Location location_;
  const AcceleratorOptions options_;
  Activity* const activity_;
  std::vector<OverlapMeter*> told_;
  std::int64_t launcher_free_at_ = 0;
};

}  // namespace purine::sim
