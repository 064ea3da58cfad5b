#include "purine/graph/number_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace purine {
namespace {

TEST(NumberMapTest, FindsNothingWhileItIsEmpty) {
  const NumberMap map;
  EXPECT_EQ(map.find(0), nullptr);
  EXPECT_EQ(map.size(), 0U);
}

TEST(NumberMapTest, HoldsWhatAMapOfTheStandardLibraryDoes) {
  std::mt19937_64 random(1);
  std::map<std::uint64_t, std::uint32_t> expected;
  NumberMap map;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::uint64_t high = random() % 100;
    const std::uint64_t key = high << 32U | random() % 100;
    EXPECT_EQ(map[key], expected[key]);
    map[key] = expected[key] = i;
  }
  EXPECT_EQ(map.size(), expected.size());
  for (std::uint64_t high = 0; high < 101; ++high) {
    for (std::uint64_t low = 0; low < 101; ++low) {
      const auto wanted = expected.find(high << 32U | low);
      const std::uint32_t* found = map.find(high << 32U | low);
      ASSERT_EQ(found != nullptr, wanted != expected.end());
      if (found == nullptr) continue;
      EXPECT_EQ(*found, wanted->second);
    }
  }
}

}  // namespace
}  // namespace purine
