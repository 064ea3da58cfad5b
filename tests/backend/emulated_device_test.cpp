#include "purine/backend/emu/emulated_device.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <numeric>
#include <vector>

#include "purine/core/error.h"
#include "tests/support/watchdog.h"

namespace purine::emu {
namespace {

/// Collects completions and waits for them.
class Listener final : public CompletionListener {
 public:
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    tags_.push_back(tag);
    errors_.push_back(error);
    changed_.notify_all();
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return tags_.size() >= count; }));
  }
  std::vector<std::uint64_t> tags() {
    const std::lock_guard lock(mutex_);
    return tags_;
  }
  std::exception_ptr error(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return errors_.at(index);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> tags_;
  std::vector<std::exception_ptr> errors_;
};

class EmulatedDeviceTest : public testing::Test {
 protected:
  std::shared_ptr<MemoryMap> map_ = std::make_shared<MemoryMap>();
};

TEST_F(EmulatedDeviceTest, CopiesBetweenHostAndDevices) {
  EmulatedDevice first({0, DeviceKind::emu, 0}, map_, {.memory = 1 << 20});
  EmulatedDevice second({0, DeviceKind::emu, 1}, map_, {.memory = 1 << 20});
  std::vector<int> sent(1000);
  std::iota(sent.begin(), sent.end(), 7);
  std::vector<int> received(1000);
  const std::size_t bytes = sent.size() * sizeof(int);
  std::byte* const there = first.allocate(bytes);
  std::byte* const elsewhere = second.allocate(bytes);
  const auto queue = first.make_queue();
  Listener listener;
  queue->copy(there, reinterpret_cast<const std::byte*>(sent.data()), bytes);
  queue->copy(elsewhere, there, bytes);
  queue->copy(reinterpret_cast<std::byte*>(received.data()), elsewhere, bytes);
  queue->notify(listener, 1);
  listener.wait_for(1);
  EXPECT_EQ(received, sent);
}

TEST_F(EmulatedDeviceTest, KernelsReachItsMemoryAndTheHostDoesNot) {
  EmulatedDevice device({0, DeviceKind::emu, 0}, map_, {.memory = 1 << 20});
  std::byte* const memory = device.allocate(64);
  const auto queue = device.make_queue();
  Listener listener;
  queue->launch(
      {[memory](void* native) { *(memory + static_cast<NativeQueue*>(native)->shift) = std::byte{42}; }, 0});
  std::byte read{};
  queue->copy(&read, memory, 1);
  queue->notify(listener, 1);
  listener.wait_for(1);
  EXPECT_EQ(read, std::byte{42});
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the queue is a thread
  EXPECT_DEATH(*const_cast<volatile std::byte*>(memory) = std::byte{1}, "");
}

TEST_F(EmulatedDeviceTest, WorksInOrderAndOtherQueuesWaitForItsEvents) {
  EmulatedDevice device({0, DeviceKind::emu, 0}, map_, {.memory = 1 << 20});
  const auto first = device.make_queue();
  const auto second = device.make_queue();
  const auto event = device.make_event();
  EXPECT_TRUE(event->query());
  Listener listener;
  for (int round = 0; round < 200; ++round) {
    int value = 0;
    first->launch({[&](void*) {
                     std::this_thread::sleep_for(std::chrono::microseconds(50));
                     value = 1;
                   },
                   0});
    first->record(*event);
    second->wait(*event);
    int seen = -1;
    second->launch({[&](void*) { seen = value; }, 0});
    second->notify(listener, static_cast<std::uint64_t>(round));
    listener.wait_for(static_cast<std::size_t>(round) + 1);
    EXPECT_EQ(seen, 1);
    EXPECT_TRUE(event->query());
  }
  std::vector<std::uint64_t> expected(200);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(listener.tags(), expected);
}

TEST_F(EmulatedDeviceTest, AFailureSticksToItsQueueAndToThoseThatWaitForIt) {
  EmulatedDevice device({0, DeviceKind::emu, 0}, map_, {.memory = 1 << 20});
  const auto failing = device.make_queue();
  const auto waiting = device.make_queue();
  const auto sound = device.make_queue();
  const auto event = device.make_event();
  Listener listener;
  bool ran = false;
  failing->launch({[](void*) { throw Error("test", "broken"); }, 0});
  failing->launch({[&](void*) { ran = true; }, 0});
  failing->record(*event);
  waiting->wait(*event);
  waiting->launch({[&](void*) { ran = true; }, 0});
  waiting->notify(listener, 1);
  listener.wait_for(1);
  sound->notify(listener, 2);
  listener.wait_for(2);
  failing->notify(listener, 3);
  failing->notify(listener, 4);
  listener.wait_for(4);
  EXPECT_FALSE(ran);
  EXPECT_THROW(std::rethrow_exception(listener.error(0)), QueueFailed);
  EXPECT_EQ(listener.error(1), nullptr);
  EXPECT_THROW(std::rethrow_exception(listener.error(2)), Error) << "the cause is told once";
  EXPECT_THROW(std::rethrow_exception(listener.error(3)), QueueFailed);
}

TEST_F(EmulatedDeviceTest, NoCallWaitsForWhatWasEnqueued) {
  const Watchdog watchdog;
  EmulatedDevice device({0, DeviceKind::emu, 0}, map_, {.memory = 1 << 20});
  const auto first = device.make_queue();
  const auto second = device.make_queue();
  const auto event = device.make_event();
  std::byte* const memory = device.allocate(64);
  Listener listener;
  std::latch all_enqueued(1);
  std::byte value{7};
  std::byte read{};
  // Only when everything below is enqueued does the queue come past its first work.
  first->launch({[&](void*) { all_enqueued.wait(); }, 0});
  first->copy(memory, &value, 1);
  first->record(*event);
  second->wait(*event);
  second->copy(&read, memory, 1);
  second->notify(listener, 1);
  first->notify(listener, 2);
  EXPECT_FALSE(event->query());
  EXPECT_TRUE(listener.tags().empty());
  all_enqueued.count_down();
  listener.wait_for(2);
  EXPECT_EQ(read, value);
}

TEST_F(EmulatedDeviceTest, CopiesTakeTheTimeOfTheLink) {
  EmulatedDevice device({0, DeviceKind::emu, 0}, map_,
                        {.memory = 1 << 20, .copy_bytes_per_second = 10e6, .copy_latency_seconds = 0.01});
  std::vector<std::byte> host(200000);
  std::byte* const memory = device.allocate(host.size());
  const auto queue = device.make_queue();
  Listener listener;
  const auto begin = std::chrono::steady_clock::now();
  queue->copy(memory, host.data(), host.size());
  queue->notify(listener, 1);
  listener.wait_for(1);
  // 10 ms of latency and 20 ms at 10 MB/s: never faster, however slow the machine is.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

TEST_F(EmulatedDeviceTest, GivesItsMemoryOutAndTakesItBack) {
  EmulatedDevice device({0, DeviceKind::emu, 3}, map_, {.memory = 4096});
  EXPECT_EQ(device.capacity(), 4096U);
  std::byte* const first = device.allocate(1024);
  std::byte* const second = device.allocate(1000);
  std::byte* const third = device.allocate(2048);
  EXPECT_EQ(second - first, 1024);
  EXPECT_EQ(third - second, 1024);
  try {
    device.allocate(1);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[emu] on 0/emu:3: 1 bytes can't be had, 0 of 4096 are free; hint: use a smaller batch or "
                 "model, or give the device more memory in RuntimeOptions::emulated, or emulated.memory_gib");
  }
  device.deallocate(second);
  device.deallocate(first);
  device.deallocate(third);
  EXPECT_EQ(device.allocate(4096), first);
}

}  // namespace
}  // namespace purine::emu
