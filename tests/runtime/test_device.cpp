#include "tests/runtime/test_device.h"

#include <chrono>
#include <cstring>
#include <new>

#include "purine/core/random.h"

namespace purine {
namespace {

constexpr std::align_val_t alignment{256};

// A point in a queue that is reached once.
class Mark {
 public:
  void reach(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::move(error);
      reached_ = true;
    }
    changed_.notify_all();
  }
  std::exception_ptr wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
    return error_;
  }
  bool reached() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr error_;
};

class TestEvent final : public Event {
 public:
  bool query() const override { return mark == nullptr || mark->reached(); }
  std::shared_ptr<Mark> mark;
};

class TestQueue final : public Queue {
 public:
  TestQueue(TestDevice& device, std::uint64_t seed, int longest_microseconds)
      : device_(device),
        random_(seed, 0, 0),
        longest_microseconds_(longest_microseconds),
        thread_([this] { work(); }) {}
  ~TestQueue() override {
    add([this] { ended_ = true; });
    thread_.join();
  }

  Device& device() override { return device_; }
  void launch(Work work) override {
    add([this, work = std::move(work)] {
      delay();
      if (error_ != nullptr) return;
      try {
        work.run(nullptr);
      } catch (...) {
        error_ = std::current_exception();
      }
    });
  }
  void record(Event& event) override {
    auto mark = std::make_shared<Mark>();
    dynamic_cast<TestEvent&>(event).mark = mark;
    add([this, mark] { mark->reach(error_ == nullptr ? nullptr : std::make_exception_ptr(QueueFailed())); });
  }
  void wait(Event& event) override {
    const std::shared_ptr<Mark> mark = dynamic_cast<TestEvent&>(event).mark;
    if (mark == nullptr) return;
    add([this, mark] {
      const std::exception_ptr error = mark->wait();
      if (error_ == nullptr) error_ = error;
    });
  }
  void copy(std::byte* destination, const std::byte* source, std::size_t bytes) override {
    launch({[=](void*) { std::memcpy(destination, source, bytes); }, 0});
  }
  void notify(CompletionListener& listener, std::uint64_t tag) override {
    add([this, &listener, tag] {
      listener.completed(tag, error_);
      if (error_ != nullptr) error_ = std::make_exception_ptr(QueueFailed());
    });
  }

 private:
  void add(std::function<void()> command) {
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(command));
    }
    added_.notify_one();
  }
  void work() {
    while (!ended_) {
      std::function<void()> command;
      {
        std::unique_lock lock(mutex_);
        added_.wait(lock, [&] { return !commands_.empty(); });
        command = std::move(commands_.front());
        commands_.pop_front();
      }
      command();
    }
  }
  void delay() {
    if (longest_microseconds_ == 0) return;
    const std::uint32_t bits = random_.bits(drawn_++);
    if (bits % 4 != 0) return;
    std::this_thread::sleep_for(
        std::chrono::microseconds(bits / 4 % static_cast<std::uint32_t>(longest_microseconds_)));
  }

  TestDevice& device_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> commands_;
  // The thread's own.
  std::exception_ptr error_;
  bool ended_ = false;
  Random random_;
  std::uint64_t drawn_ = 0;
  int longest_microseconds_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Queue> TestDevice::make_queue() {
  return std::make_unique<TestQueue>(*this, seed_++, longest_microseconds_);
}

std::unique_ptr<Event> TestDevice::make_event() {
  return std::make_unique<TestEvent>();
}

std::byte* TestDevice::allocate(std::size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, alignment));
}

void TestDevice::deallocate(std::byte* memory) {
  ::operator delete(memory, alignment);
}

}  // namespace purine
