#include "purine/runtime/idle_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/watchdog.h"

namespace purine {
namespace {

// Producers add items one by one, with pauses in which consumers fall asleep; a lost wake-up leaves an item
// lying, and the test would not end.
TEST(IdleWorkersTest, EveryItemIsFoundByAWorker) {
  const Watchdog watchdog;
  for (const int consumers : {1, 2, 4, 16}) {
    constexpr int producers = 2;
    constexpr int items = 2000;
    IdleWorkers idle(3);
    std::atomic<int> available{0};
    std::atomic<int> taken{0};
    const auto take = [&] {
      int count = available.load();
      while (count > 0) {
        if (available.compare_exchange_weak(count, count - 1)) return true;
      }
      return false;
    };
    const auto visible = [&] { return available.load() > 0; };
    std::vector<std::thread> threads;
    for (int i = 0; i < consumers; ++i) {
      threads.emplace_back([&] {
        while (idle.wait(take, visible)) {
          taken.fetch_add(1);
          if (visible()) idle.notify();
        }
      });
    }
    std::vector<std::thread> makers;
    for (int i = 0; i < producers; ++i) {
      makers.emplace_back([&, i] {
        for (int item = 0; item < items; ++item) {
          available.fetch_add(1);
          idle.notify();
          if (item % (50 + i) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
      });
    }
    for (std::thread& maker : makers) maker.join();
    while (taken.load() < producers * items) std::this_thread::yield();
    idle.close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken.load(), producers * items);
    EXPECT_EQ(available.load(), 0);
  }
}

// Work that comes after a worker's last search and before its sleep: the notifier sees a searcher and leaves
// it at that, so the worker must look once more.
TEST(IdleWorkersTest, WorkThatComesJustBeforeSleepIsSeen) {
  const Watchdog watchdog;
  IdleWorkers idle(1);
  bool available = false;
  const auto find = [&] {
    if (available) return true;
    available = true;
    idle.notify();
    return false;
  };
  EXPECT_TRUE(idle.wait(find, [&] { return available; }));
}

// A notifier that counts the worker as asleep before it is: the permit that it leaves is the worker's.
TEST(IdleWorkersTest, AWakeUpThatComesBeforeTheSleepIsKept) {
  const Watchdog watchdog;
  for (const bool visible : {false, true}) {
    IdleWorkers idle(1);
    bool available = false;
    const auto notify_late = [&] {
      available = true;
      idle.notify();
      return visible;
    };
    EXPECT_TRUE(idle.wait([&] { return available; }, notify_late));
  }
}

TEST(IdleWorkersTest, CloseEndsAllWaiting) {
  const Watchdog watchdog;
  IdleWorkers idle(1);
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_FALSE(idle.wait([] { return false; }, [] { return false; }));
      ended.fetch_add(1);
    });
  }
  idle.close();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended.load(), 4);
  EXPECT_FALSE(idle.wait([] { return true; }, [] { return true; }));
}

}  // namespace
}  // namespace purine
