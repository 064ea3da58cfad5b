#include "purine/runtime/dispatcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "purine/core/error.h"
#include "tests/runtime/random_program.h"
#include "tests/support/error_text.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::text_of_cause;

using Edges = std::vector<MarkedEdge>;

MarkedGraph graph_of(std::uint32_t operators, const Edges& edges, const std::vector<double>& costs = {}) {
  MarkedGraphBuilder builder(operators);
  for (std::uint32_t op = 0; op < costs.size(); ++op) builder.set_cost(op, costs[op]);
  for (const MarkedEdge& edge : edges) builder.add_edge(edge);
  return builder.build([](std::uint32_t op) { return "operator_" + std::to_string(op); });
}

// An executor made of functions.
class Functions final : public Executor {
 public:
  using Run = std::function<void(std::uint32_t op, std::int64_t iteration, int part, int worker)>;
  explicit Functions(Run run, int parts = 1) : run_(std::move(run)), parts_(parts) {}
  int parts(std::uint32_t) const override { return parts_; }
  void run(std::uint32_t op, std::int64_t iteration, int part, int worker) override {
    run_(op, iteration, part, worker);
  }

 private:
  Run run_;
  int parts_;
};

class DispatcherTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Workers, DispatcherTest, testing::Values(1, 2, 4, 16),
                         [](const auto& value) { return std::to_string(value.param) + "_workers"; });

TEST_P(DispatcherTest, TensOfThousandsOfIterationsOfATinyGraph) {
  const Watchdog watchdog;
  constexpr std::int64_t iterations = 30'000;
  // 0 -> 1 -> 2, and 2's value is read by 0 in the next iteration: a variable.
  const MarkedGraph graph = graph_of(3, {{0, 1, 0}, {1, 2, 0}, {2, 0, 1}});
  std::int64_t value = 0;  // plain: the edges alone order its accesses
  Functions executor([&](std::uint32_t op, std::int64_t t, int, int) {
    EXPECT_EQ(value, 3 * t + op);
    ++value;
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 3});
  dispatcher.admit(iterations);
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(value, 3 * iterations);
}

TEST_P(DispatcherTest, EveryPartRunsOnceAndTheLastOneReleases) {
  const Watchdog watchdog;
  constexpr int parts = 7;
  constexpr std::int64_t iterations = 300;
  const MarkedGraph graph = graph_of(3, {{0, 1, 0}, {1, 2, 0}, {2, 0, 1}});
  std::vector<std::atomic<int>> runs(3 * parts);
  std::vector<int> values(3 * parts, 0);
  Functions executor(
      [&](std::uint32_t op, std::int64_t t, int part, int) {
        runs[op * parts + static_cast<std::uint32_t>(part)].fetch_add(1);
        // All parts of the operator before must be there.
        const std::uint32_t before = (op + 2) % 3;
        for (std::uint32_t i = 0; i < parts; ++i) {
          EXPECT_EQ(values[before * parts + i], op == 0 ? t : t + 1);
        }
        ++values[op * parts + static_cast<std::uint32_t>(part)];
      },
      parts);
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 2});
  dispatcher.admit(iterations);
  EXPECT_TRUE(dispatcher.drain());
  for (const auto& count : runs) EXPECT_EQ(count.load(), iterations);
}

TEST_P(DispatcherTest, StopEndsAtTheIterationsThatAreStarted) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(2, {{0, 1, 0}});
  std::atomic<bool> begun{false};
  Functions executor([&](std::uint32_t, std::int64_t, int, int) {
    begun.store(true);
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 2});
  dispatcher.admit(1'000'000);
  while (!begun.load()) std::this_thread::yield();
  dispatcher.stop();
  EXPECT_TRUE(dispatcher.drain());
  const std::int64_t finished = dispatcher.finished();
  EXPECT_GT(finished, 0);
  EXPECT_LT(finished, 1'000'000);
  EXPECT_FALSE(dispatcher.wait_for(999'999));
  EXPECT_TRUE(dispatcher.wait_for(finished - 1));
  EXPECT_FALSE(dispatcher.failure().has_value());
}

TEST_P(DispatcherTest, CanBeDestroyedInTheMiddle) {
  const Watchdog watchdog;
  const TestProgram program = random_program({.seed = 5, .operators = 40, .lane_devices = {-1}});
  const MarkedGraph graph = program.mark();
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::atomic<int> runs{0};
    Functions executor([&](std::uint32_t, std::int64_t, int, int) { runs.fetch_add(1); }, 2);
    {
      Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 2});
      dispatcher.admit(1'000'000);
      while (runs.load() < repetition * 50) std::this_thread::yield();
    }
    const int at_end = runs.load();
    std::this_thread::yield();
    EXPECT_EQ(runs.load(), at_end);
  }
}

TEST_P(DispatcherTest, AnEmptyGraphHasIterationsToo) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(0, {});
  Functions executor([](std::uint32_t, std::int64_t, int, int) {});
  for (const bool shuffled : {false, true}) {
    DispatcherOptions options;
    if (shuffled) options.shuffle_seed = 1;
    Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, options);
    dispatcher.admit(100);
    EXPECT_TRUE(dispatcher.wait_for(99));
    EXPECT_TRUE(dispatcher.drain());
    EXPECT_EQ(dispatcher.finished(), 100);
  }
}

TEST_P(DispatcherTest, TracesEveryExecution) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(2, {{0, 1, 0}});
  Functions executor([](std::uint32_t, std::int64_t, int, int) {}, 3);
  std::mutex mutex;
  std::multiset<std::tuple<std::uint32_t, std::int64_t, int>> seen;
  DispatcherOptions options;
  options.trace = [&](const Execution& execution) {
    const std::lock_guard lock(mutex);
    seen.insert({execution.op, execution.iteration, execution.part});
    EXPECT_LE(execution.begin, execution.end);
    EXPECT_EQ(execution.lane, 0U);
    EXPECT_GE(execution.worker, 0);
    EXPECT_LT(execution.worker, GetParam());
  };
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, options);
  dispatcher.admit(50);
  EXPECT_TRUE(dispatcher.drain());
  std::multiset<std::tuple<std::uint32_t, std::int64_t, int>> expected;
  for (std::int64_t t = 0; t < 50; ++t) {
    for (std::uint32_t op = 0; op < 2; ++op) {
      for (int part = 0; part < 3; ++part) expected.insert({op, t, part});
    }
  }
  EXPECT_EQ(seen, expected);
}

// Operator 0 of iteration 0 ends only when operator 1 of iteration 1 has run: there is no barrier.
TEST(DispatcherOverlapTest, AnIterationStartsBeforeTheLastOneEnds) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(2, {});
  std::latch next_iteration(1);
  Functions executor([&](std::uint32_t op, std::int64_t t, int, int) {
    if (op == 0 && t == 0) next_iteration.wait();
    if (op == 1 && t == 1) next_iteration.count_down();
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(2)}, {.window = 2});
  dispatcher.admit(2);
  EXPECT_TRUE(dispatcher.drain());
}

// Parts, and independent operators, run at the same time: each waits for all others.
TEST(DispatcherOverlapTest, WorkersShareTheParts) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(1, {});
  std::latch together(4);
  Functions executor([&](std::uint32_t, std::int64_t, int, int) { together.arrive_and_wait(); }, 4);
  Dispatcher dispatcher(graph, executor, {Lane::cpu(4)});
  dispatcher.admit(1);
  EXPECT_TRUE(dispatcher.drain());
}

TEST(DispatcherOverlapTest, IndependentOperatorsRunTogether) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(5, {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {0, 4, 0}});
  std::latch together(4);
  Functions executor([&](std::uint32_t op, std::int64_t, int, int) {
    if (op > 0) together.arrive_and_wait();
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(4)});
  dispatcher.admit(1);
  EXPECT_TRUE(dispatcher.drain());
}

TEST(DispatcherPriorityTest, TheLongestWayToTheEndGoesFirst) {
  const Watchdog watchdog;
  // 0 releases 1 (short), 2 (before the long 4) and 3 (middle).
  const MarkedGraph graph = graph_of(5, {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {2, 4, 0}}, {1, 1, 1, 3, 9});
  std::vector<std::uint32_t> order;
  Functions executor([&](std::uint32_t op, std::int64_t, int, int) { order.push_back(op); });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(1)});
  dispatcher.admit(1);
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 2, 4, 3, 1}));
}

// One worker, two iterations at hand. Operator 0 leads to 1 (9 seconds) in the same iteration and in the
// next; 2 and 3 are short and nobody waits for them. With start(0) = 0, start(1) = 1, start(3) = 18 and a
// period of 12, operators 0 and 1 of iteration 1 (12 and 13) go before operators 2 and 3 of iteration 0.
TEST(DispatcherPriorityTest, TheNextIterationsUrgentOperatorsGoBeforeThisOnesLeisurelyOnes) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(4, {{0, 1, 0}, {1, 0, 1}, {0, 2, 0}, {0, 3, 0}}, {1, 9, 1, 1});
  EXPECT_EQ(graph.period(), 12.0F);
  EXPECT_EQ(graph.start(graph.position_of(2)), 19.0F);
  std::latch admitted(1);
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  Functions executor([&](std::uint32_t op, std::int64_t t, int, int) {
    if (op == 0 && t == 0) admitted.wait();
    order.emplace_back(t, op);
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(1)}, {.window = 2});
  dispatcher.admit(2);
  admitted.count_down();
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(order, (std::vector<std::pair<std::int64_t, std::uint32_t>>{
                       {0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}}));
}

TEST(DispatcherUnfinishedTest, NamesWhatRuns) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(2, {{0, 1, 0}});
  std::latch begun(1);
  std::latch may_end(1);
  Functions executor([&](std::uint32_t op, std::int64_t t, int, int) {
    if (op != 1 || t != 1) return;
    begun.count_down();
    may_end.wait();
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(1)});
  EXPECT_EQ(dispatcher.describe_unfinished([](std::uint32_t) { return "path"; }), "");
  dispatcher.admit(3);
  begun.wait();
  const std::vector<Unfinished> unfinished = dispatcher.unfinished();
  ASSERT_EQ(unfinished.size(), 1U);
  EXPECT_EQ(unfinished[0].op, 1U);
  EXPECT_EQ(dispatcher.describe_unfinished([](std::uint32_t op) { return "op_" + std::to_string(op); }),
            "op_1 in iteration 1, on lane 0");
  may_end.count_down();
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_TRUE(dispatcher.unfinished().empty());
}

// ---- Failures ---------------------------------------------------------------------------------------------

class DispatcherFailureTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Workers, DispatcherFailureTest, testing::Values(1, 2, 4, 16),
                         [](const auto& value) { return std::to_string(value.param) + "_workers"; });

// Every operator in turn throws: what reads its value, directly or not, in this iteration or a later one,
// does not run, all else does, and everything ends.
TEST_P(DispatcherFailureTest, AnyOperatorMayThrow) {
  const Watchdog watchdog;
  constexpr std::int64_t iterations = 12;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const TestProgram program = random_program({.seed = seed, .operators = 25, .lane_devices = {-1}});
    const MarkedGraph graph = program.mark();
    for (std::uint32_t failing = 0; failing < 25; ++failing) {
      const std::int64_t failing_iteration = failing % 4;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", operator " + std::to_string(failing));
      const std::vector<std::pair<std::uint32_t, std::int64_t>> throwing{{failing, failing_iteration}};
      CheckingExecutor executor(program, {.iterations = iterations,
                                          .window = 3,
                                          .seed = seed,
                                          .longest_microseconds = 2,
                                          .throwing = throwing});
      DispatcherOptions options{.window = 3};
      if (failing % 2 == 0) options.shuffle_seed = failing;
      Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, options);
      dispatcher.admit(iterations);
      EXPECT_FALSE(dispatcher.drain());
      const std::int64_t started = dispatcher.finished();
      EXPECT_GT(started, failing_iteration);
      EXPECT_LE(started, iterations);

      const std::optional<Failure> failure = dispatcher.failure();
      ASSERT_TRUE(failure.has_value());
      EXPECT_EQ(failure->op, failing);
      EXPECT_EQ(failure->iteration, failing_iteration);
      EXPECT_EQ(text_of_cause(failure->cause), "operator " + std::to_string(failing) + " failed");
      EXPECT_TRUE(failing_iteration == 0 || dispatcher.wait_for(failing_iteration - 1));
      EXPECT_FALSE(dispatcher.wait_for(failing_iteration));
      EXPECT_FALSE(dispatcher.wait_for(iterations - 1));

      const auto poisoned = program.poisoned(throwing, iterations);
      for (std::int64_t t = 0; t < iterations; ++t) {
        for (std::uint32_t op = 0; op < 25; ++op) {
          const bool expected = t < started && !poisoned[static_cast<std::size_t>(t)][op];
          EXPECT_EQ(executor.ran(op, t), expected) << "operator " << op << " in iteration " << t;
        }
      }
      EXPECT_EQ(executor.hazards(), "");
    }
  }
}

// A variable keeps the last version that was computed from sound values.
TEST_P(DispatcherFailureTest, APoisonedVersionIsNeverCommitted) {
  const Watchdog watchdog;
  // gradient reads the weight of the iteration before; update reads the gradient and updates the weight in
  // place; other updates its own variable and reads nothing that fails.
  TestProgram program;
  enum : std::uint32_t { gradient, update, other };
  program.tensors = {{gradient, 1}, {update, 1}, {other, 1}};
  program.operators = {{{{1, 1}}, {0}}, {{{0, 0}, {1, 1}}, {1}}, {{{2, 1}}, {2}}};
  const MarkedGraph graph = program.mark();
  CheckingExecutor executor(program, {.iterations = 100, .window = 2, .throwing = {{gradient, 5}}});
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 2});
  dispatcher.admit(100);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(executor.version(1, 0), 4);
  EXPECT_EQ(executor.version(2, 0), dispatcher.finished() - 1);
}

// All that fails runs in every order, but the failure that is told is always the same.
TEST_P(DispatcherFailureTest, TheFirstOfSeveralFailuresIsTold) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(20, {});
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Functions executor([&](std::uint32_t op, std::int64_t t, int, int) {
      if (t == 3 && op % 3 == 1) throw Error("test", "operator " + std::to_string(op) + " fails");
      if (t == 4) throw Error("test", "a later one");
    });
    Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 4, .shuffle_seed = seed});
    dispatcher.admit(50);
    EXPECT_FALSE(dispatcher.drain());
    EXPECT_EQ(text_of_cause(dispatcher.failure()->cause), "[test] operator 1 fails");
    EXPECT_EQ(dispatcher.failure()->iteration, 3);
    EXPECT_TRUE(dispatcher.wait_for(2));
    EXPECT_FALSE(dispatcher.wait_for(3));
  }
}

TEST_P(DispatcherFailureTest, APartThatThrowsFailsTheOperator) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(3, {{0, 1, 0}, {0, 2, 0, EdgeKind::order}});
  std::atomic<int> readers{0};
  std::atomic<int> followers{0};
  Functions executor(
      [&](std::uint32_t op, std::int64_t t, int part, int) {
        if (op == 0 && t == 2 && part == 3) throw Error("test", "part 3 fails");
        if (op == 1 && t == 2) readers.fetch_add(1);
        if (op == 2 && t == 2) followers.fetch_add(1);
      },
      5);
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 1});
  dispatcher.admit(10);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(dispatcher.finished(), 3);
  EXPECT_EQ(text_of_cause(dispatcher.failure()->cause), "[test] part 3 fails");
  EXPECT_EQ(readers.load(), 0);
  EXPECT_EQ(followers.load(), 5);
}

TEST_P(DispatcherFailureTest, NothingStartsAfterAFailure) {
  const Watchdog watchdog;
  const MarkedGraph graph = graph_of(1, {});
  std::atomic<int> runs{0};
  Functions executor([&](std::uint32_t, std::int64_t, int, int) {
    runs.fetch_add(1);
    throw Error("test", "fails");
  });
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 1});
  dispatcher.admit(5);
  EXPECT_FALSE(dispatcher.drain());
  dispatcher.admit(10);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(runs.load(), 1);
  EXPECT_EQ(dispatcher.finished(), 1);
}

}  // namespace
}  // namespace purine
