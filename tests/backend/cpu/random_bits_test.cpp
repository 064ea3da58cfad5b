#include "purine/backend/cpu/random_bits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/backend/cpu/vector_targets.h"

namespace purine {
namespace {

TEST(CpuRandomBitsTest, AreThoseOfSingleElements) {
  const Random random(3, 0x123456789abcdefULL, 0x1234567890ULL);
  struct Range {
    std::uint64_t first;
    std::uint64_t step;
    std::int64_t count;
  };
  test::with_every_vector_target([&] {
    for (const auto& [first, step, count] :
         {Range{0, 1, 67}, Range{5, 1, 16}, Range{2, 196, 100}, Range{7, 3, 1}, Range{1, 1, 0},
          Range{(std::uint64_t{1} << 34) - 9, 1, 40}, Range{std::uint64_t{3} << 40, 49, 33}}) {
      // One element more, which stays as it is.
      std::vector<std::uint32_t> bits(static_cast<std::size_t>(count) + 1, 7);
      cpu::random_bits(random, first, step, count, bits.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t element = first + static_cast<std::uint64_t>(i) * step;
        ASSERT_EQ(bits[static_cast<std::size_t>(i)], random.bits(element))
            << first << " " << step << " " << i;
      }
      EXPECT_EQ(bits.back(), 7);
    }
  });
}

}  // namespace
}  // namespace purine
