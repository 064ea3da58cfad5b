#include "purine/runtime/yielding_thread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace purine {
namespace {

TEST(YieldingThreadTest, TheCallingThreadAloneYields) {
  const int before = sched_getscheduler(0);
  int yielding = -1;
  std::thread([&] {
    yield_to_workers();
    yielding = sched_getscheduler(0);
  }).join();
  EXPECT_EQ(yielding, SCHED_BATCH);
  EXPECT_EQ(sched_getscheduler(0), before);
}

}  // namespace
}  // namespace purine
