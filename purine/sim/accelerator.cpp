#include "purine/sim/accelerator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "purine/core/error.h"

namespace purine::sim {

std::int64_t Link::duration(const std::vector<Link*>& way, std::int64_t bytes) {
  double slowest = std::numeric_limits<double>::infinity();
  double latency = 0;
  for (const Link* link : way) {
    slowest = std::min(slowest, link->bytes_per_second_);
    latency += link->latency_;
  }
  return nanoseconds(latency + static_cast<double>(bytes) / slowest);
}

std::int64_t Link::first_free(const std::vector<Link*>& way, std::int64_t now) {
  for (const Link* link : way) now = std::max(now, link->free_at_);
  return now;
}

SimulatedQueue::SimulatedQueue(SimulatedDevice& device) : device_(device) {}

Device& SimulatedQueue::device() {
  return device_;
}

void SimulatedQueue::launch(Work work) {
  Item item;
  item.launched_at = device_.launch();
  item.amount = nanoseconds(work.seconds);
  add(std::move(item));
}

void SimulatedQueue::move(std::vector<Link*> way, std::int64_t bytes) {
  Item item;
  item.kind = Item::Kind::move;
  item.launched_at = device_.launch();
  item.amount = bytes;
  item.way = std::move(way);
  add(std::move(item));
}

void SimulatedQueue::copy(std::byte*, const std::byte*, std::size_t) {
  throw Error("simulated device", "copies nothing that lies at an address");
}

void SimulatedQueue::record(Event& event) {
  Item item;
  item.kind = Item::Kind::record;
  item.event = &static_cast<SimulatedEvent&>(event);
  item.amount = static_cast<std::int64_t>(++item.event->recorded_);
  add(std::move(item));
}

void SimulatedQueue::wait(Event& event) {
  Item item;
  item.kind = Item::Kind::wait;
  item.event = &static_cast<SimulatedEvent&>(event);
  item.amount = static_cast<std::int64_t>(item.event->recorded_);
  add(std::move(item));
}

void SimulatedQueue::notify(CompletionListener& listener, std::uint64_t tag) {
  Item item;
  item.kind = Item::Kind::notify;
  item.listener = &listener;
  item.tag = tag;
  add(std::move(item));
}

void SimulatedQueue::add(Item item) {
  items_.push_back(std::move(item));
  if (state_ == State::idle) proceed();
}

void SimulatedQueue::proceed() {
  state_ = State::idle;
  while (!items_.empty() && begin(items_.front())) items_.pop_front();
}

// False if the item takes time; then `act`, or the event that it waits for, goes on.
bool SimulatedQueue::begin(const Item& item) {
  VirtualTime& time = device_.time_;
  switch (item.kind) {
    case Item::Kind::work:
    case Item::Kind::move: {
      std::int64_t begin = std::max(time.now(), item.launched_at);
      if (item.kind == Item::Kind::move) begin = Link::first_free(item.way, begin);
      if (begin > time.now()) {
        state_ = State::launching;
        time.schedule(begin, *this);
        return false;
      }
      std::int64_t duration = item.amount;
      if (item.kind == Item::Kind::move) {
        duration = Link::duration(item.way, item.amount);
        state_ = State::moving;
        device_.meter.move_begins();
        for (Link* link : item.way) {
          link->occupy_until(begin + duration);
          link->meter.move_begins();
        }
      } else {
        state_ = State::working;
        device_.operator_begins();
      }
      time.schedule(begin + duration, *this);
      return false;
    }
    case Item::Kind::record: {
      SimulatedEvent& event = *item.event;
      event.reached_ = static_cast<std::uint64_t>(item.amount);
      for (SimulatedQueue* queue : std::exchange(event.waiting_, {})) queue->proceed();
      return true;
    }
    case Item::Kind::wait:
      if (item.event->reached_ >= static_cast<std::uint64_t>(item.amount)) return true;
      state_ = State::waiting;
      item.event->waiting_.push_back(this);
      return false;
    case Item::Kind::notify:
      if (device_.activity_ != nullptr) device_.activity_->something_completed();
      item.listener->completed(item.tag, nullptr);
      return true;
  }
  return true;
}

void SimulatedQueue::act(std::uint64_t) {
  if (state_ == State::working) device_.operator_ends();
  if (state_ == State::moving) {
    device_.meter.move_ends(items_.front().amount);
    for (Link* link : items_.front().way) link->meter.move_ends(items_.front().amount);
  }
  if (state_ != State::launching) items_.pop_front();
  proceed();
}

std::byte* SimulatedDevice::allocate(std::size_t) {
  throw Error("simulated device", "has no memory to give");
}

void SimulatedDevice::deallocate(std::byte*) {}

std::int64_t SimulatedDevice::launch() {
  launcher_free_at_ = std::max(launcher_free_at_, time_.now()) + nanoseconds(options_.launch_seconds);
  return launcher_free_at_;
}

void SimulatedDevice::operator_begins() {
  meter.operator_begins();
  for (OverlapMeter* other : told_) other->operator_begins();
}

void SimulatedDevice::operator_ends() {
  meter.operator_ends();
  for (OverlapMeter* other : told_) other->operator_ends();
}

}  // namespace purine::sim
