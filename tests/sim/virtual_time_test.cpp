#include "purine/sim/virtual_time.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/error_text.h"

namespace purine::sim {
namespace {

class Nothing final : public TimedAction {
 public:
  void act(std::uint64_t) override {}
};

constexpr const char* hint =
    "; hint: are the cluster's rates right? A smaller batch takes less, and so do fewer steps";

TEST(VirtualTimeTest, NanosecondsAreRounded) {
  EXPECT_EQ(nanoseconds(1.5e-9), 2);
  EXPECT_EQ(nanoseconds(0), 0);
  EXPECT_EQ(nanoseconds(9e6), 9'000'000'000'000'000);
}

TEST(VirtualTimeTest, WhatTakesTooLongIsAnError) {
  for (const double seconds :
       {9.1e6, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(test::error_text([&] { nanoseconds(seconds); }),
              std::string("[simulation] an operator or a message takes longer than 104 days") + hint);
  }
  VirtualTime time;
  Nothing action;
  time.schedule(std::int64_t{1} << 61, action);
  EXPECT_TRUE(time.advance());
  EXPECT_EQ(test::error_text([&] { time.schedule(time.now() + 1, action); }),
            std::string("[simulation] the steps take longer than 73 years") + hint);
}

}  // namespace
}  // namespace purine::sim
