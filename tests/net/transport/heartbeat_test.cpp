#include "purine/net/transport/heartbeat.h"

#include <gtest/gtest.h>

namespace purine::net {
namespace {

using std::chrono::milliseconds;

TEST(HeartbeatTest, IsDueEachSecondOrSoonerForAShortLimit) {
  const Heartbeat::Clock::time_point start{};
  Heartbeat slow(milliseconds(30'000), start);
  EXPECT_FALSE(slow.due(start + milliseconds(999)));
  EXPECT_TRUE(slow.due(start + milliseconds(1000)));
  EXPECT_FALSE(slow.due(start + milliseconds(1500)));
  EXPECT_TRUE(slow.due(start + milliseconds(2100)));
  Heartbeat fast(milliseconds(800), start);
  EXPECT_TRUE(fast.due(start + milliseconds(100)));
}

TEST(HeartbeatTest, SilenceIsLongerThanTheLimit) {
  const Heartbeat::Clock::time_point start{};
  Heartbeat heartbeat(milliseconds(2000), start);
  for (int time = 0; time <= 2000; time += 100) {
    heartbeat.turn(start + milliseconds(time));
    EXPECT_FALSE(heartbeat.silent(start + milliseconds(time)));
  }
  EXPECT_TRUE(heartbeat.silent(start + milliseconds(2001)));
  heartbeat.heard(start + milliseconds(2001));
  EXPECT_FALSE(heartbeat.silent(start + milliseconds(4001)));
  EXPECT_TRUE(heartbeat.silent(start + milliseconds(4002)));
}

TEST(HeartbeatTest, OnesOwnAbsenceIsNoSilenceOfOthers) {
  const Heartbeat::Clock::time_point start{};
  Heartbeat heartbeat(milliseconds(2000), start);
  heartbeat.turn(start + milliseconds(200));
  heartbeat.turn(start + milliseconds(9000));  // stopped meanwhile
  EXPECT_FALSE(heartbeat.silent(start + milliseconds(9000)));
  EXPECT_FALSE(heartbeat.silent(start + milliseconds(10'800)));
  EXPECT_TRUE(heartbeat.silent(start + milliseconds(10'801)));
}

}  // namespace
}  // namespace purine::net
