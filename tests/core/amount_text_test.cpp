#include "purine/core/amount_text.h"

#include <gtest/gtest.h>

namespace purine {
namespace {

TEST(AmountTextTest, CountsHaveCommas) {
  EXPECT_EQ(count_text(7), "7");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-1234), "-1,234");
}

TEST(AmountTextTest, OneOfSomethingIsNoPlural) {
  EXPECT_EQ(counted_text(0, "step"), "0 steps");
  EXPECT_EQ(counted_text(1, "step"), "1 step");
  EXPECT_EQ(counted_text(5628, "step"), "5,628 steps");
}

TEST(AmountTextTest, BytesHaveTheLargestUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(999'949), "999.9 kB");
  EXPECT_EQ(bytes_text(23'400'000), "23.4 MB");
}

TEST(AmountTextTest, GigabytesHaveTwoDigits) {
  EXPECT_EQ(bytes_text(999'999'999), "1.00 GB");
  EXPECT_EQ(bytes_text(1'647'000'000), "1.65 GB");
  EXPECT_EQ(bytes_text(3'000'000'000'000'000), "3000.00 TB");
}

}  // namespace
}  // namespace purine
