#include "purine/trace/critical_path.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace purine::trace {
namespace {

/// A trace in which operators are added one by one: times are what they say.
class PathTest : public testing::Test {
 protected:
  PathTest() : ranks_(2) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].rank = static_cast<std::int32_t>(rank);
      ranks_[rank].tracks = {"worker 0", "worker 1", "queue"};
    }
  }

  std::uint32_t add(std::string path, std::vector<Dependency> after = {}, std::size_t rank = 0) {
    OperatorLabel label{std::move(path), "linear", "0/cpu:0", ""};
    label.after = std::move(after);
    ranks_[rank].operators.push_back(label);
    return static_cast<std::uint32_t>(ranks_[rank].operators.size() - 1);
  }
  std::uint32_t exchange(bool sends, std::vector<Dependency> after = {}, std::size_t rank = 0) {
    const std::uint32_t op = add(sends ? "send" : "receive", std::move(after), rank);
    ranks_[rank].operators[op].exchange = {sends, rank == 0 ? 1 : 0, 5, 100};
    return op;
  }
  void ran(std::uint32_t op, std::int32_t track, std::int64_t iteration, std::int64_t begin, std::int64_t end,
           std::size_t rank = 0, std::int32_t part = 0) {
    ranks_[rank].events.push_back({op, part, track, iteration, begin, end});
  }

  using Stretches = std::vector<std::pair<std::string, std::int64_t>>;
  /// The path as names (`idle` where nothing ran) and lengths.
  Stretches path() {
    for (Trace& trace : ranks_) trace.sort();
    const Timeline timeline(ranks_);
    path_ = critical_path(timeline);
    Stretches stretches;
    std::int64_t at = path_.begin;
    for (const Stretch& stretch : path_.stretches) {
      EXPECT_EQ(stretch.begin, at) << "no gaps and no overlaps";
      at = stretch.end;
      stretches.emplace_back(stretch.use == Use::idle ? "idle" : timeline.label(stretch.event).path,
                             stretch.end - stretch.begin);
    }
    EXPECT_EQ(at, path_.end);
    return stretches;
  }

  std::vector<Trace> ranks_;
  CriticalPath path_;
};

TEST_F(PathTest, FollowsTheValueThatCameLast) {
  const auto a = add("a");
  const auto b = add("b");
  const auto c = add("c", {{a}, {b}});
  ran(a, 0, 0, 0, 10);
  ran(b, 1, 0, 0, 30);
  ran(c, 0, 0, 30, 50);
  EXPECT_EQ(path(), (Stretches{{"b", 30}, {"c", 20}}));
  EXPECT_EQ(path_.steps, 1);
  EXPECT_EQ(path_.step_time(), 50);
  EXPECT_EQ(path_.stretches[0].link, Link::value);
}

TEST_F(PathTest, AWorkerThatWasBusyIsWhatAnOperatorWaitedFor) {
  const auto a = add("a");
  const auto b = add("b");
  const auto c = add("c", {{a}});
  ran(a, 0, 0, 0, 10);
  ran(b, 1, 0, 0, 40);
  ran(c, 1, 0, 42, 50);
  EXPECT_EQ(path(), (Stretches{{"b", 40}, {"idle", 2}, {"c", 8}}));
  EXPECT_EQ(path_.stretches[0].link, Link::track);
}

TEST_F(PathTest, StorageThatIsStillReadHoldsAnOperatorUp) {
  const auto reader = add("reader");
  const auto writer = add("writer", {{reader, 0, false}});
  ran(reader, 0, 0, 0, 20);
  ran(writer, 1, 0, 21, 30);
  EXPECT_EQ(path(), (Stretches{{"reader", 20}, {"idle", 1}, {"writer", 9}}));
  EXPECT_EQ(path_.stretches[0].link, Link::storage);
}

TEST_F(PathTest, OfAnOperatorInPartsTheLastOneCounts) {
  const auto a = add("a");
  const auto b = add("b", {{a}});
  ran(a, 0, 0, 0, 10, 0, 0);
  ran(a, 1, 0, 2, 25, 0, 1);
  ran(b, 0, 0, 25, 30);
  EXPECT_EQ(path(), (Stretches{{"idle", 2}, {"a", 23}, {"b", 5}}));
}

// A loop of two operators on two workers: the update of one iteration is read by the next. The closed form of
// a step is the length of the loop, 30 + 12; the side branch is hidden.
TEST_F(PathTest, TheLoopThroughIterationsIsTheStep) {
  const auto forward = add("forward", {{1, 1}});
  const auto update = add("update", {{forward}});
  const auto side = add("side", {{forward}});
  for (std::int64_t t = 0; t < 5; ++t) {
    ran(forward, 0, t, 42 * t, 42 * t + 30);
    ran(update, 0, t, 42 * t + 30, 42 * t + 42);
    ran(side, 1, t, 42 * t + 30, 42 * t + 40);
  }
  const Stretches stretches = path();
  EXPECT_EQ(path_.steps, 4);
  EXPECT_EQ(path_.step_time(), 42);
  ASSERT_EQ(stretches.size(), 8U);
  for (std::size_t i = 0; i < 8; i += 2) {
    EXPECT_EQ(stretches[i], (std::pair<std::string, std::int64_t>("forward", 30)));
    EXPECT_EQ(stretches[i + 1], (std::pair<std::string, std::int64_t>("update", 12)));
  }
}

// What is handed to a queue early starts when what is before it has ended.
TEST_F(PathTest, WorkOnAQueueStartsWhenItsTurnComes) {
  const auto a = add("a");
  const auto b = add("b");
  ran(a, 2, 0, 0, 50);
  ran(b, 2, 0, 1, 80);
  EXPECT_EQ(path(), (Stretches{{"a", 50}, {"b", 30}}));
}

TEST_F(PathTest, AMessageLeadsToTheRankThatSentIt) {
  const auto make = add("make");
  const auto send = exchange(true, {{make}});
  const auto receive = exchange(false, {}, 1);
  const auto use = add("use", {{receive}}, 1);
  ran(make, 0, 0, 0, 40);
  ran(send, 2, 0, 41, 60);
  ran(receive, 2, 0, 5, 70, 1);  // its memory was offered early
  ran(use, 0, 0, 72, 90, 1);
  EXPECT_EQ(path(), (Stretches{{"make", 40}, {"idle", 1}, {"receive", 29}, {"idle", 2}, {"use", 18}}));
  EXPECT_EQ(path_.stretches[2].use, Use::transfer);
  EXPECT_EQ(path_.stretches[0].link, Link::message);
  EXPECT_EQ(path_.stretches[0].event.rank, 0U);
  EXPECT_EQ(path_.stretches[4].event.rank, 1U);
}

TEST_F(PathTest, AMessageThatWaitsForMemoryLeadsToWhoHeldIt) {
  const auto send = exchange(true);
  const auto holder = add("holder", {}, 1);
  const auto receive = exchange(false, {{holder, 0, false}}, 1);
  ran(send, 2, 0, 3, 70);
  ran(holder, 0, 0, 0, 50, 1);
  ran(receive, 2, 0, 51, 75, 1);
  EXPECT_EQ(path(), (Stretches{{"holder", 50}, {"idle", 1}, {"receive", 24}}));
}

// At most one iteration in progress: the next one's source waits for its end, however late that is seen.
TEST_F(PathTest, TheWindowOfIterationsIsACause) {
  const auto source = add("source");
  const auto work = add("work", {{source}});
  for (std::int64_t t = 0; t < 3; ++t) {
    ran(source, 0, t, 100 * t, 100 * t + 20);
    ran(work, 1, t, 100 * t + 20, 100 * t + 90);
  }
  EXPECT_EQ(
      path(),
      (Stretches{{"idle", 10}, {"source", 20}, {"work", 70}, {"idle", 10}, {"source", 20}, {"work", 70}}));
  EXPECT_EQ(path_.stretches[3].link, Link::window);
}

TEST_F(PathTest, OperatorsOfNoLengthThatTouchAreVisitedOnce) {
  const auto a = add("a", {{1, 0}});
  const auto b = add("b", {{a, 0}});  // no real program has such a circle
  ran(a, 0, 0, 10, 10);
  ran(b, 1, 0, 10, 10);
  EXPECT_EQ(path().size(), 0U);
}

TEST_F(PathTest, ATraceThatRanFullEndsWithItsLastWholeIteration) {
  const auto a = add("a", {{1, 1}});
  const auto b = add("b", {{a}});
  for (std::int64_t t = 0; t < 4; ++t) {
    ran(a, 0, t, 20 * t, 20 * t + 10);
    if (t < 3) ran(b, 0, t, 20 * t + 10, 20 * t + 20);
  }
  ranks_[0].dropped = 1;
  path();
  EXPECT_EQ(path_.steps, 2);
  EXPECT_EQ(path_.end, 60);
}

TEST_F(PathTest, WorkersThatOnlyServeAcceleratorsAreNotWhatComputes) {
  ranks_[0].tracks = {"worker 0", "worker 1", "0/cuda:0 kernels"};
  const std::uint32_t read = add("read");
  const std::uint32_t convolve = add("convolve");
  const std::uint32_t sum = add("sum");
  ranks_[0].operators[convolve].location = "0/cuda:0";
  ran(read, 0, 0, 0, 10);
  ran(convolve, 2, 0, 10, 90);
  ran(sum, 1, 0, 90, 95);
  using Tracks = std::vector<char>;
  EXPECT_EQ(Timeline(ranks_).computes()[0], (Tracks{0, 0, 1}));
  ranks_[0].operators[sum].operations = 5;
  EXPECT_EQ(Timeline(ranks_).computes()[0], (Tracks{0, 1, 1}));
  ranks_[0].operators[convolve].location = "0/cpu:0";
  EXPECT_EQ(Timeline(ranks_).computes()[0], (Tracks{1, 1, 1}));
}

TEST_F(PathTest, AnEmptyTraceHasNoPath) {
  EXPECT_EQ(path().size(), 0U);
  EXPECT_EQ(path_.steps, 0);
}

}  // namespace
}  // namespace purine::trace
