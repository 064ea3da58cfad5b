#include "purine/net/transport/pace.h"

#include <gtest/gtest.h>

namespace purine::net {
namespace {

constexpr std::size_t kibi = 1024;

TEST(PaceTest, TheSystemKeepsWhatGoesInFiveMilliseconds) {
  EXPECT_EQ(pace_of(24e6).unsent_bytes, 120'000u);
  EXPECT_EQ(pace_of(120e6).unsent_bytes, 600'000u);
  EXPECT_EQ(pace_of(1.2e9).unsent_bytes, 6'000'000u);
}

TEST(PaceTest, AChunkIsAPowerOfTwoThatGoesInHalfThat) {
  EXPECT_EQ(pace_of(60e6).chunk_bytes, 128 * kibi);
  EXPECT_EQ(pace_of(120e6).chunk_bytes, 256 * kibi);
  EXPECT_EQ(pace_of(240e6).chunk_bytes, 512 * kibi);
}

TEST(PaceTest, ChunksHaveALeastAndALargestSize) {
  EXPECT_EQ(pace_of(1).chunk_bytes, smallest_chunk);
  EXPECT_EQ(pace_of(1).unsent_bytes, smallest_chunk);
  EXPECT_EQ(pace_of(1e15).chunk_bytes, largest_chunk);
}

}  // namespace
}  // namespace purine::net
