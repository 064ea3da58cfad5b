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

// Begins a piece of work, or asks for service, when it is due.
class Beginning final : public TimedAction {
 public:
  Beginning(Cores& cores, std::int64_t nanoseconds, Cores::Listener& listener, bool serves = false)
      : cores_(cores), nanoseconds_(nanoseconds), listener_(listener), serves_(serves) {}
  void act(std::uint64_t tag) override {
    if (serves_) {
      cores_.serve(nanoseconds_, listener_, tag, false);
    } else {
      cores_.run(nanoseconds_, listener_, tag);
    }
  }

 private:
  Cores& cores_;
  std::int64_t nanoseconds_;
  Cores::Listener& listener_;
  bool serves_;
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

// What `cores` does with work that begins at 0 and services that are asked for at these times.
TagsAndTimes with_services(Cores& cores, VirtualTime& time, std::int64_t work, std::int64_t service,
                           const std::vector<std::int64_t>& asked_at) {
  Ends ends(time);
  Beginning beginning(cores, service, ends, true);
  if (work > 0) cores.run(work, ends, 1);
  for (const std::int64_t at : asked_at) time.schedule(at, beginning, 2);
  while (time.advance()) {
  }
  return ends.ends;
}

TEST(CoresTest, ServiceWaitsForATurnOfACoreThatWorksAndThenGoesFirst) {
  VirtualTime time;
  Cores cores(time, 1, 1, 4 * ms);
  EXPECT_EQ(with_services(cores, time, 10 * ms, 1 * ms, {2 * ms}), TagsAndTimes({{2, 5 * ms}, {1, 11 * ms}}));
}

TEST(CoresTest, WorkThatTookAFreeCoreKeepsItAtTurnsForASlice) {
  VirtualTime time;
  Cores cores(time, 1, 1, 4 * ms, 5 * ms);
  EXPECT_EQ(with_services(cores, time, 12 * ms, 1 * ms, {2 * ms, 9 * ms}),
            TagsAndTimes({{2, 9 * ms}, {2, 13 * ms}, {1, 14 * ms}}));
}

TEST(CoresTest, EachTurnIsForOneThatServes) {
  VirtualTime time;
  Cores cores(time, 1, 1, 4 * ms);
  EXPECT_EQ(with_services(cores, time, 10 * ms, 1 * ms, {2 * ms, 3 * ms}),
            TagsAndTimes({{2, 5 * ms}, {2, 9 * ms}, {1, 12 * ms}}));
}

TEST(CoresTest, ServiceHasAFreeCoreInAMoment) {
  constexpr std::int64_t moment = 1000;
  {
    VirtualTime time;
    Cores cores(time, 2, 1, 4 * ms);
    EXPECT_EQ(with_services(cores, time, 10 * ms, 1 * ms, {2 * ms}),
              TagsAndTimes({{2, 3 * ms + moment}, {1, 10 * ms}}));
  }
  // The core is free when the work has ended, before the next turn.
  VirtualTime time;
  Cores cores(time, 1, 1, 4 * ms);
  EXPECT_EQ(with_services(cores, time, 3 * ms, 1 * ms, {2 * ms}),
            TagsAndTimes({{1, 3 * ms}, {2, 4 * ms + moment}}));
}

TEST(CoresTest, AThreadThatGoesOnKeepsItsTurn) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 1, 1, 4 * ms);
  cores.run(10 * ms, ends, 1);
  cores.serve(1 * ms, ends, 2, true);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{2, 1 * ms}, {1, 11 * ms}}));
}

TEST(CoresTest, AThreadThatGoesOnMakesWayForAWorkerThatItHasWoken) {
  VirtualTime time;
  Ends ends(time);
  Cores cores(time, 1, 1, 4 * ms);
  cores.serve(1 * ms, ends, 2, true);
  cores.run(10 * ms, ends, 1);
  while (time.advance()) {
  }
  EXPECT_EQ(ends.ends, TagsAndTimes({{2, 5 * ms}, {1, 11 * ms}}));
}

TEST(CoresTest, WithoutTurnsServiceIsWorkLikeAllOther) {
  VirtualTime time;
  Cores cores(time, 1, 1);
  EXPECT_EQ(with_services(cores, time, 10 * ms, 1 * ms, {2 * ms}), TagsAndTimes({{2, 4 * ms}, {1, 11 * ms}}));
}

}  // namespace
}  // namespace purine::sim
