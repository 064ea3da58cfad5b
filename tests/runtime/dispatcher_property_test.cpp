// Random marked graphs, random durations, shuffled ready operators: no deadlock, no hazard, the same bits.
#include <gtest/gtest.h>

#include "purine/runtime/dispatcher.h"
#include "tests/runtime/random_program.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

class DispatcherPropertyTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Workers, DispatcherPropertyTest, testing::Values(1, 2, 4, 16),
                         [](const auto& value) { return std::to_string(value.param) + "_workers"; });

// The checks below are worth what the executor finds: a read before the write, a write before the last read.
TEST(CheckingExecutorTest, FindsHazards) {
  TestProgram program;
  program.tensors = {{0, 1}};
  program.operators = {{{}, {0}}, {{{0, 0}}, {}}};
  const CheckingExecutor::Options options{.iterations = 3, .window = 1, .throwing = {}};
  CheckingExecutor early(program, options);
  early.run(1, 0, 0, 0);
  EXPECT_EQ(early.hazards(), "operator 1 reads version -1 of tensor 0 instead of 0\n");
  CheckingExecutor late(program, options);
  late.run(0, 0, 0, 0);
  late.run(0, 1, 0, 0);
  late.run(1, 0, 0, 0);
  EXPECT_EQ(late.hazards(),
            "iteration 1 started outside of the window\n"
            "operator 1 reads version 1 of tensor 0 instead of 0\n");
  CheckingExecutor twice(program, options);
  twice.run(0, 0, 0, 0);
  twice.run(0, 0, 0, 0);
  EXPECT_EQ(twice.hazards(),
            "operator 0 fired twice, or out of order, in iteration 0\n"
            "operator 0 writes tensor 0 out of order\n");
}

struct Case {
  std::uint64_t seed = 0;
  int window = 1;
  bool shuffled = false;
  int longest_microseconds = 5;
};

// Runs a random program and compares it with the serial reference. True if iterations overlapped.
bool run_case(const Case& test_case, const RandomProgramOptions& program_options, int workers) {
  SCOPED_TRACE("seed " + std::to_string(test_case.seed) + ", window " + std::to_string(test_case.window));
  constexpr std::int64_t iterations = 12;
  const TestProgram program = random_program(program_options);
  const CheckingExecutor::Options options{.iterations = iterations,
                                          .window = test_case.window,
                                          .seed = test_case.seed,
                                          .longest_microseconds = test_case.longest_microseconds,
                                          .throwing = {}};
  CheckingExecutor reference(program, {.iterations = iterations, .longest_microseconds = 0, .throwing = {}});
  reference.run_serially(iterations);
  EXPECT_EQ(reference.hazards(), "");

  const MarkedGraph graph = program.mark();
  CheckingExecutor executor(program, options);
  DispatcherOptions dispatcher_options{.window = test_case.window};
  if (test_case.shuffled) dispatcher_options.shuffle_seed = test_case.seed;
  Dispatcher dispatcher(graph, executor, {Lane::cpu(workers)}, dispatcher_options);
  dispatcher.admit(iterations);
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(dispatcher.finished(), iterations);
  EXPECT_EQ(executor.hazards(), "");
  EXPECT_EQ(executor.results(), reference.results());
  for (std::int64_t t = 0; t < iterations; ++t) {
    for (std::uint32_t op = 0; op < program.operators.size(); ++op) EXPECT_TRUE(executor.ran(op, t));
  }
  return executor.overlapped();
}

TEST_P(DispatcherPropertyTest, RandomProgramsGiveTheReferencesBits) {
  const Watchdog watchdog;
  int overlaps = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case test_case{seed, 1 + static_cast<int>(seed % 4), seed % 3 != 0, 5};
    RandomProgramOptions options{.seed = seed, .lane_devices = {-1}};
    options.operators = 5 + static_cast<std::uint32_t>(seed % 7) * 10;
    const bool overlapped = run_case(test_case, options, GetParam());
    EXPECT_FALSE(overlapped && test_case.window == 1);
    overlaps += overlapped ? 1 : 0;
  }
  EXPECT_GT(overlaps, 0);
}

// Without durations, races come closer together.
TEST_P(DispatcherPropertyTest, RandomProgramsOfEmptyOperators) {
  const Watchdog watchdog;
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    const Case test_case{seed, 1 + static_cast<int>(seed % 3), seed % 2 == 0, 0};
    run_case(test_case, {.seed = seed, .operators = 40, .most_parts = 8, .lane_devices = {-1}}, GetParam());
  }
}

// Two CPU lanes with workers of their own.
TEST_P(DispatcherPropertyTest, RandomProgramsOnTwoCpuLanes) {
  const Watchdog watchdog;
  for (std::uint64_t seed = 200; seed < 220; ++seed) {
    const TestProgram program = random_program({.seed = seed, .operators = 40, .lane_devices = {-1, -1}});
    CheckingExecutor reference(program, {.iterations = 10, .longest_microseconds = 0, .throwing = {}});
    reference.run_serially(10);
    CheckingExecutor executor(program, {.iterations = 10, .window = 2, .seed = seed, .throwing = {}});
    const MarkedGraph graph = program.mark();
    Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam()), Lane::cpu(1)}, {.window = 2});
    EXPECT_EQ(dispatcher.worker_count(), GetParam() + 1);
    dispatcher.admit(10);
    EXPECT_TRUE(dispatcher.drain());
    EXPECT_EQ(executor.hazards(), "");
    EXPECT_EQ(executor.results(), reference.results());
  }
}

// The dispatcher goes on where it stopped, as if it had never been idle.
TEST_P(DispatcherPropertyTest, RunsOnAfterADrain) {
  const Watchdog watchdog;
  for (std::uint64_t seed = 300; seed < 310; ++seed) {
    const TestProgram program = random_program({.seed = seed, .operators = 30, .lane_devices = {-1}});
    CheckingExecutor reference(program, {.iterations = 15, .longest_microseconds = 0, .throwing = {}});
    reference.run_serially(15);
    CheckingExecutor executor(program, {.iterations = 15, .window = 3, .seed = seed, .throwing = {}});
    const MarkedGraph graph = program.mark();
    Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 3});
    dispatcher.admit(10);
    EXPECT_TRUE(dispatcher.drain());
    EXPECT_EQ(dispatcher.finished(), 10);
    dispatcher.admit(15);
    EXPECT_TRUE(dispatcher.wait_for(14));
    EXPECT_EQ(executor.hazards(), "");
    EXPECT_EQ(executor.results(), reference.results());
  }
}

// The driver that admits one iteration at a time, a few ahead of the one that it waits for.
TEST_P(DispatcherPropertyTest, IterationsAdmittedOneByOne) {
  const Watchdog watchdog;
  const TestProgram program = random_program({.seed = 7, .operators = 20, .lane_devices = {-1}});
  CheckingExecutor reference(program, {.iterations = 200, .longest_microseconds = 0, .throwing = {}});
  reference.run_serially(200);
  CheckingExecutor executor(
      program, {.iterations = 200, .window = 2, .seed = 7, .longest_microseconds = 1, .throwing = {}});
  const MarkedGraph graph = program.mark();
  Dispatcher dispatcher(graph, executor, {Lane::cpu(GetParam())}, {.window = 2});
  for (std::int64_t t = 0; t < 200; ++t) {
    dispatcher.admit(t + 1);
    EXPECT_TRUE(t < 3 || dispatcher.wait_for(t - 3));
  }
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(executor.hazards(), "");
  EXPECT_EQ(executor.results(), reference.results());
}

}  // namespace
}  // namespace purine
