#include "purine/backend/emu/emulated_queue.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace purine::emu {

bool EmulatedEvent::query() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reached == state_->recorded;
}

EmulatedQueue::EmulatedQueue(EmulatedDevice& device)
    : device_(device), native_{device.shift()}, thread_([this] { run(); }) {}

EmulatedQueue::~EmulatedQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  more_.notify_one();
  thread_.join();
}

void EmulatedQueue::enqueue(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  more_.notify_one();
}

void EmulatedQueue::run() {
  while (true) {
    std::function<void()> command;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return closing_ || !commands_.empty(); });
      if (commands_.empty()) return;
      command = std::move(commands_.front());
      commands_.pop_front();
    }
    command();
  }
}

void EmulatedQueue::launch(Work work) {
  enqueue([this, work = std::move(work)] {
    if (error_ != nullptr) return;
    try {
      work.run(&native_);
    } catch (...) {
      error_ = std::current_exception();
    }
  });
}

void EmulatedQueue::record(Event& event) {
  const std::shared_ptr<EmulatedEvent::State> state = dynamic_cast<EmulatedEvent&>(event).state_;
  std::uint64_t mark = 0;
  {
    const std::lock_guard lock(state->mutex);
    mark = ++state->recorded;
  }
  enqueue([this, state, mark] {
    {
      const std::lock_guard lock(state->mutex);
      state->reached = mark;
      state->failed = error_ != nullptr;
    }
    state->reached_more.notify_all();
  });
}

void EmulatedQueue::wait(Event& event) {
  const std::shared_ptr<EmulatedEvent::State> state = dynamic_cast<EmulatedEvent&>(event).state_;
  std::uint64_t mark = 0;
  {
    const std::lock_guard lock(state->mutex);
    mark = state->recorded;
  }
  enqueue([this, state, mark] {
    std::unique_lock lock(state->mutex);
    state->reached_more.wait(lock, [&] { return state->reached >= mark; });
    if (error_ == nullptr && state->failed) error_ = std::make_exception_ptr(QueueFailed());
  });
}

void EmulatedQueue::copy(std::byte* destination, const std::byte* source, std::size_t bytes) {
  enqueue([this, destination, source, bytes] {
    if (error_ != nullptr) return;
    const auto begin = std::chrono::steady_clock::now();
    const MemoryMap& map = device_.memory_map();
    std::memcpy(map.accessible(destination), map.accessible(const_cast<std::byte*>(source)), bytes);
    const EmulatedOptions& options = device_.options();
    const std::chrono::duration<double> time(options.copy_latency_seconds +
                                             static_cast<double>(bytes) / options.copy_bytes_per_second);
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  });
}

void EmulatedQueue::notify(CompletionListener& listener, std::uint64_t tag) {
  enqueue([this, &listener, tag] {
    listener.completed(tag, error_);
    if (error_ != nullptr) error_ = std::make_exception_ptr(QueueFailed());
  });
}

}  // namespace purine::emu
