#include "purine/runtime/ready_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "purine/core/random.h"

namespace purine {
namespace {

TEST(ReadySetTest, AgreesWithAnOrderedSet) {
  for (const std::uint32_t size : {1U, 64U, 65U, 5000U, 300'000U, 1'000'000U}) {
    ReadySet ready(size, 2);
    std::set<std::uint32_t> reference[2];
    const Random random(size, 0, 0);
    for (std::uint64_t step = 0; step < 4000; ++step) {
      const auto phase = static_cast<std::uint32_t>(random.below(4 * step, 2));
      const auto index = static_cast<std::uint32_t>(random.below(4 * step + 1, size));
      std::set<std::uint32_t>& expected = reference[phase];
      if (random.below(4 * step + 2, 2) == 0) {
        ready.insert(phase, index);
        expected.insert(index);
      } else if (!expected.empty()) {
        // One that is there, and one that perhaps is not.
        const std::uint32_t first = *expected.begin();
        EXPECT_TRUE(ready.take(phase, first));
        expected.erase(first);
        EXPECT_EQ(ready.take(phase, index), expected.erase(index) == 1);
      }
      EXPECT_EQ(ready.find(phase), expected.empty() ? ReadySet::none : *expected.begin());
      const auto from = static_cast<std::uint32_t>(random.below(4 * step + 3, size));
      const auto after = expected.lower_bound(from);
      EXPECT_EQ(ready.find(phase, from), after == expected.end() ? ReadySet::none : *after);
      EXPECT_EQ(ready.empty(phase), expected.empty());
      EXPECT_EQ(ready.empty(), reference[0].empty() && reference[1].empty());
    }
  }
}

TEST(ReadySetTest, InsertsAWordAtOnce) {
  ReadySet ready(200, 1);
  ready.insert_word(0, 2, 0b1001);
  EXPECT_EQ(ready.find(0), 128U);
  EXPECT_TRUE(ready.take(0, 128));
  EXPECT_EQ(ready.find(0), 131U);
  EXPECT_FALSE(ready.take(0, 130));
}

// Threads insert and take at the same time: each index comes out exactly once a round, and at rest the
// summaries tell the truth.
TEST(ReadySetTest, HandsEachIndexToOneThread) {
  constexpr std::uint32_t size = 300;
  constexpr std::uint32_t rounds = 300;
  for (const int threads : {2, 4, 16}) {
    ReadySet ready(size, 1);
    std::vector<std::atomic<std::uint32_t>> taken(size);
    std::atomic<std::uint32_t> total{0};
    std::vector<std::thread> pool;
    for (std::uint32_t index = 0; index < size; ++index) ready.insert(0, index);
    for (int thread = 0; thread < threads; ++thread) {
      pool.emplace_back([&] {
        while (total.load() < size * rounds) {
          const std::uint32_t index = ready.find(0);
          if (index == ReadySet::none) {
            std::this_thread::yield();
            continue;
          }
          if (!ready.take(0, index)) continue;
          total.fetch_add(1);
          // Whoever took it inserts it again until it has come out often enough.
          if (taken[index].fetch_add(1) + 1 < rounds) ready.insert(0, index);
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
    for (const auto& count : taken) EXPECT_EQ(count.load(), rounds);
    EXPECT_EQ(total.load(), size * rounds);
    EXPECT_TRUE(ready.empty());
    EXPECT_EQ(ready.find(0), ReadySet::none);
  }
}

}  // namespace
}  // namespace purine
