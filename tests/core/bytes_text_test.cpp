#include "purine/core/bytes_text.h"

#include <gtest/gtest.h>

namespace purine {
namespace {

TEST(BytesTextTest, TakesTheLargestUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(999'949), "999.9 kB");
  EXPECT_EQ(bytes_text(23'400'000), "23.4 MB");
}

TEST(BytesTextTest, SaysMoreOfGigabytes) {
  EXPECT_EQ(bytes_text(999'999'999), "1.00 GB");
  EXPECT_EQ(bytes_text(1'647'000'000), "1.65 GB");
  EXPECT_EQ(bytes_text(3'000'000'000'000'000), "3000.00 TB");
}

}  // namespace
}  // namespace purine
