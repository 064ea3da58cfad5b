#include "purine/sim/token_bucket.h"

#include <gtest/gtest.h>

namespace purine::sim {
namespace {

TEST(TokenBucketTest, WithoutABurstBytesPassAtTheRate) {
  TokenBucket bucket(1e9, 0);
  EXPECT_EQ(bucket.pass(300, 1000, 1000), 1300);
  EXPECT_EQ(bucket.pass(300, 1100, 1100), 1600);  // after those before
  EXPECT_EQ(bucket.pass(300, 5000, 5000), 5300);
  EXPECT_EQ(bucket.pass(300, 6000, 6900), 6900);  // what comes slowly is not held up
}

TEST(TokenBucketTest, AfterARestWhatCouldHavePassedDoesSoAtOnce) {
  TokenBucket bucket(1e9, 100);
  EXPECT_EQ(bucket.pass(300, 0, 0), 200);
  EXPECT_EQ(bucket.pass(300, 240, 240), 500);
  EXPECT_EQ(bucket.pass(60, 540, 540), 560);     // a rest of 40
  EXPECT_EQ(bucket.pass(60, 9000, 9000), 9000);  // a long one
  EXPECT_EQ(bucket.pass(60, 9000, 9000), 9020);
}

TEST(TokenBucketTest, WithoutARateNothingIsHeldUp) {
  TokenBucket bucket(0, 0);
  EXPECT_EQ(bucket.pass(1'000'000, 7, 9), 9);
}

}  // namespace
}  // namespace purine::sim
