#include "purine/sim/cores.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace purine::sim {
namespace {

constexpr std::int64_t ms = 1'000'000;

// Notes when each piece of work ends.
class Ends final : public Cores::Listener {
 public:
  explicit Ends(const VirtualTime& time) : time_(time) {}
  void work_done(std::uint64_t tag) override { ends.emplace_back(tag, time_.now()); }
  std::vector<std::pair<std::uint64_t, std::int64_t>> ends;

 private:
  const VirtualTime& time_;
};

// Begins a piece of work when it is due.
class Beginning final : public TimedAction {
 public:
  Beginning(Cores& cores, std::int64_t nanoseconds, Cores::Listener& listener)
      : cores_(cores), nanoseconds_(nanoseconds), listener_(listener) {}
  void act(std::uint64_t tag) override { cores_.run(nanoseconds_, listener_, tag); }

 private:
  Cores& cores_;
  std::int64_t nanoseconds_;
  Cores::Listener& listener_;
};

using TagsAndTimes = std::vector<std::pair<std::uint64_t, std::int64_t>>;

TEST(CoresTest, WorkThatIsAloneTakesItsTime) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 2, 0.5);
  cores.run(7 * ms, ends, 1);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{1, 7 * ms}}));
}

TEST(CoresTest, CoresThatAreAllBusyAreSlower) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 2, 0.8);
  cores.run(8 * ms, ends, 1);
  cores.run(8 * ms, ends, 2);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{1, 10 * ms}, {2, 10 * ms}}));
}

TEST(CoresTest, SpeedsChangeWithWhatBeginsAndEnds) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 2, 0.8);
  Beginning second(cores, 8 * ms, ends);
  cores.run(8 * ms, ends, 1);
  time.schedule(4 * ms, second, 2);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{1, 9 * ms}, {2, 13 * ms}}));
}

TEST(CoresTest, MoreWorkThanCoresSharesThem) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 2, 1);
  for (std::uint64_t tag = 1; tag <= 4; ++tag) cores.run(3 * ms, ends, tag);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{1, 6 * ms}, {2, 6 * ms}, {3, 6 * ms}, {4, 6 * ms}}));
}

}  // namespace
}  // namespace purine::sim
