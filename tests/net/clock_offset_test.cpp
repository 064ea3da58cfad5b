#include "purine/net/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "purine/session/gather_values.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine::net {
namespace {

/// The machine's clock, as a host has it that was started at another time.
class OtherClock final : public Clock {
 public:
  explicit OtherClock(std::int64_t ahead) : ahead_(ahead) {}
  std::int64_t now() const override { return clock_.now() + ahead_; }

 private:
  SteadyClock clock_;
  std::int64_t ahead_;
};

TEST(ClockOffsetTest, FindsHowFarClocksAreApart) {
  const Watchdog watchdog;
  constexpr int ranks = 3;
  constexpr std::int64_t day = 86'400'000'000'000;
  InProcessHub hub(ranks);
  const auto errors = test::at_ranks(hub, ranks, [&](Endpoint& endpoint) {
    const std::int64_t ahead = (endpoint.rank() - 1) * day;  // a day behind, none, a day ahead
    const OtherClock clock(ahead);
    for (int round = 0; round < 2; ++round) {
      const std::int64_t before = clock.now();
      const ClockOffset measured = measure_clock_offset(endpoint, clock);
      EXPECT_GE(measured.at, before);
      EXPECT_LE(measured.at, clock.now());
      if (endpoint.rank() == 0) {
        EXPECT_EQ(measured.offset, 0);
        EXPECT_EQ(measured.error, 0);
      } else {
        EXPECT_GT(measured.error, 0);
        EXPECT_LE(std::abs(measured.offset - (-day - ahead)), measured.error);
      }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
}

TEST(ClockOffsetTest, OneRankIsItsOwnClock) {
  InProcessHub hub(1);
  const SteadyClock clock;
  EXPECT_EQ(measure_clock_offset(hub.endpoint(0), clock).offset, 0);
}

TEST(ClockOffsetTest, ARankThatFailsEndsTheMeasurementEverywhere) {
  const Watchdog watchdog;
  InProcessHub hub(3);
  const auto errors = test::at_ranks(hub, 3, [&](Endpoint& endpoint) {
    if (endpoint.rank() == 2) {
      endpoint.fail("a broken clock");
      return;
    }
    measure_clock_offset(endpoint, SteadyClock());
  });
  EXPECT_NE(errors[0].find("a broken clock"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("a broken clock"), std::string::npos) << errors[1];
}

}  // namespace
}  // namespace purine::net
