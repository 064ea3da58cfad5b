// Queue lanes: asynchronous devices beside CPUs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <stdexcept>

#include "purine/core/error.h"
#include "purine/runtime/dispatcher.h"
#include "tests/runtime/random_program.h"
#include "tests/runtime/test_device.h"
#include "tests/support/error_text.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::text_of_cause;

// Lanes with the queues of test devices, as a program's lane_devices say.
struct Devices {
  Devices(const std::vector<int>& lane_devices, int workers, std::uint64_t seed, int longest_microseconds) {
    for (int i = 0; i < 2; ++i) {
      devices.push_back(
          std::make_unique<TestDevice>(seed + 100 * static_cast<std::uint64_t>(i), longest_microseconds));
    }
    for (const int device : lane_devices) {
      if (device < 0) {
        lanes.push_back(Lane::cpu(workers));
      } else {
        queues.push_back(devices[static_cast<std::size_t>(device)]->make_queue());
        lanes.push_back(Lane::on(*queues.back(), 1 + static_cast<int>(seed % 4)));
      }
    }
  }
  std::vector<std::unique_ptr<TestDevice>> devices;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Lane> lanes;
};

TEST(TestDeviceTest, QueuesKeepTheirOrderAndWaitForEvents) {
  const Watchdog watchdog;
  TestDevice device(1, 20);
  std::byte* memory = device.allocate(8);
  std::byte* copy = device.allocate(8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
  const auto event = device.make_event();
  EXPECT_TRUE(event->query());
  {
    const auto first = device.make_queue();
    const auto second = device.make_queue();
    first->launch({[&](void*) { std::memset(memory, 1, 8); }, 0});
    first->launch({[&](void*) { std::memset(memory, 2, 4); }, 0});
    first->record(*event);
    second->wait(*event);
    second->copy(copy, memory, 8);
    second->record(*event);
    first->wait(*event);
    first->launch({[&](void*) { EXPECT_EQ(std::memcmp(copy, memory, 8), 0); }, 0});
  }
  EXPECT_TRUE(event->query());
  EXPECT_EQ(copy[0], std::byte{2});
  EXPECT_EQ(copy[7], std::byte{1});
  device.deallocate(memory);
  device.deallocate(copy);
}

class DispatcherQueueTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Workers, DispatcherQueueTest, testing::Values(1, 2, 4, 16),
                         [](const auto& value) { return std::to_string(value.param) + "_workers"; });

// Two queues of one device (events between them), one of another device, and a CPU.
const std::vector<int> mixed_lanes{-1, 0, 0, 1};

TEST_P(DispatcherQueueTest, RandomProgramsOnMixedLanesGiveTheReferencesBits) {
  const Watchdog watchdog;
  constexpr std::int64_t iterations = 10;
  bool overlapped = false;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int window = 1 + static_cast<int>(seed % 3);
    const TestProgram program = random_program({.seed = seed, .operators = 30, .lane_devices = mixed_lanes});
    CheckingExecutor reference(program,
                               {.iterations = iterations, .longest_microseconds = 0, .throwing = {}});
    reference.run_serially(iterations);
    const MarkedGraph graph = program.mark();
    CheckingExecutor executor(program, {.iterations = iterations,
                                        .window = window,
                                        .seed = seed,
                                        .longest_microseconds = 3,
                                        .throwing = {}});
    Devices devices(mixed_lanes, GetParam(), seed, seed % 2 == 0 ? 30 : 0);
    DispatcherOptions options{.window = window};
    if (seed % 3 != 0) options.shuffle_seed = seed;
    Dispatcher dispatcher(graph, executor, devices.lanes, options);
    dispatcher.admit(iterations - 3);
    EXPECT_TRUE(dispatcher.drain());
    dispatcher.admit(iterations);
    EXPECT_TRUE(dispatcher.drain());
    EXPECT_EQ(executor.hazards(), "");
    EXPECT_EQ(executor.results(), reference.results());
    overlapped |= executor.overlapped();
  }
  EXPECT_TRUE(overlapped);
}

TEST_P(DispatcherQueueTest, AnOperatorThatCannotBeIssuedPoisonsAndDrains) {
  const Watchdog watchdog;
  constexpr std::int64_t iterations = 8;
  const TestProgram program = random_program({.seed = 4, .operators = 25, .lane_devices = mixed_lanes});
  const MarkedGraph graph = program.mark();
  for (std::uint32_t failing = 0; failing < 25; ++failing) {
    SCOPED_TRACE("operator " + std::to_string(failing));
    const std::vector<std::pair<std::uint32_t, std::int64_t>> throwing{{failing, 2}};
    CheckingExecutor executor(program, {.iterations = iterations, .window = 2, .throwing = throwing});
    Devices devices(mixed_lanes, GetParam(), failing, 10);
    Dispatcher dispatcher(graph, executor, devices.lanes, {.window = 2});
    dispatcher.admit(iterations);
    EXPECT_FALSE(dispatcher.drain());
    ASSERT_TRUE(dispatcher.failure().has_value());
    EXPECT_EQ(dispatcher.failure()->op, failing);
    EXPECT_EQ(dispatcher.failure()->iteration, 2);
    const bool queued = mixed_lanes[program.operators[failing].lane] >= 0;
    EXPECT_EQ(text_of_cause(dispatcher.failure()->cause),
              "operator " + std::to_string(failing) + (queued ? " can't be issued" : " failed"));
    const auto poisoned = program.poisoned(throwing, iterations);
    for (std::int64_t t = 0; t < dispatcher.finished(); ++t) {
      for (std::uint32_t op = 0; op < 25; ++op) {
        EXPECT_EQ(executor.ran(op, t), !poisoned[static_cast<std::size_t>(t)][op])
            << "operator " << op << " in iteration " << t;
      }
    }
    EXPECT_EQ(executor.hazards(), "");
  }
}

// What fails on a queue fails all that follows there; what is poisoned has not run, and the cause is told
// once.
TEST_P(DispatcherQueueTest, WorkThatFailsOnAQueuePoisonsAndDrains) {
  const Watchdog watchdog;
  constexpr std::int64_t iterations = 8;
  const TestProgram program = random_program({.seed = 9, .operators = 25, .lane_devices = mixed_lanes});
  const MarkedGraph graph = program.mark();
  int failures = 0;
  for (std::uint32_t failing = 0; failing < 25; ++failing) {
    if (mixed_lanes[program.operators[failing].lane] < 0) continue;
    ++failures;
    SCOPED_TRACE("operator " + std::to_string(failing));
    const std::vector<std::pair<std::uint32_t, std::int64_t>> throwing{{failing, 2}};
    CheckingExecutor executor(
        program, {.iterations = iterations, .window = 2, .throwing = throwing, .fail_on_queue = true});
    Devices devices(mixed_lanes, GetParam(), failing, 10);
    Dispatcher dispatcher(graph, executor, devices.lanes, {.window = 2});
    dispatcher.admit(iterations);
    EXPECT_FALSE(dispatcher.drain());
    ASSERT_TRUE(dispatcher.failure().has_value());
    EXPECT_EQ(text_of_cause(dispatcher.failure()->cause), "operator " + std::to_string(failing) + " failed");
    const auto poisoned = program.poisoned(throwing, iterations);
    for (std::int64_t t = 0; t < dispatcher.finished(); ++t) {
      for (std::uint32_t op = 0; op < 25; ++op) {
        if (poisoned[static_cast<std::size_t>(t)][op]) {
          EXPECT_FALSE(executor.ran(op, t));
        }
      }
    }
    EXPECT_FALSE(dispatcher.wait_for(2));
    EXPECT_EQ(executor.hazards(), "");
  }
  EXPECT_GT(failures, 10);
}

TEST(DispatcherQueueLimitsTest, AsManyOperatorsAreInFlightAsTheDepthSays) {
  const Watchdog watchdog;
  const MarkedGraph graph = MarkedGraphBuilder(40).build([](std::uint32_t) { return "independent"; });
  constexpr int depth = 3;
  class Counting final : public Executor {
   public:
    void run(std::uint32_t, std::int64_t, int, int) override {}
    void issue(std::uint32_t, std::int64_t, Queue& queue) override {
      const int now = in_flight.fetch_add(1) + 1;
      most = std::max(most, now);
      if (now == depth) full.count_down();
      queue.launch({[this](void*) {
                      if (waits) full.wait();  // the first one ends when the queue is full
                      waits = false;
                      in_flight.fetch_sub(1);
                    },
                    0});
    }
    std::latch full{1};
    std::atomic<int> in_flight{0};
    int most = 0;
    bool waits = true;
  } executor;
  TestDevice device;
  const auto queue = device.make_queue();
  Dispatcher dispatcher(graph, executor, {Lane::on(*queue, depth)});
  dispatcher.admit(1);
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(executor.most, depth);
}

// Nothing runs, nothing is ready, and an iteration is not finished: the dispatcher says what it waits for.
TEST(DispatcherQueueLimitsTest, AStallNamesWhatIsInFlight) {
  const Watchdog watchdog;
  MarkedGraphBuilder builder(2);
  builder.set_lane(0, 1);
  builder.add_edge({0, 1, 0});
  const MarkedGraph graph = builder.build([](std::uint32_t) { return "path"; });
  std::latch message(1);
  class Receiving final : public Executor {
   public:
    explicit Receiving(std::latch& message) : message_(message) {}
    void run(std::uint32_t, std::int64_t, int, int) override {}
    void issue(std::uint32_t, std::int64_t, Queue& queue) override {
      queue.launch({[this](void*) { message_.wait(); }, 0});
    }

   private:
    std::latch& message_;
  } executor(message);
  TestDevice network;
  const auto queue = network.make_queue();
  Dispatcher dispatcher(graph, executor, {Lane::cpu(1), Lane::on(*queue)});
  dispatcher.admit(1);
  const auto path = [](std::uint32_t op) { return op == 0 ? "stage/receive" : "stage/add"; };
  while (dispatcher.describe_unfinished(path).empty()) std::this_thread::yield();
  EXPECT_EQ(dispatcher.describe_unfinished(path), "stage/receive in iteration 0, on lane 1");
  message.count_down();
  EXPECT_TRUE(dispatcher.drain());
}

TEST(DispatcherQueueLimitsTest, AnExecutorWithoutQueuesSaysSo) {
  const Watchdog watchdog;
  const MarkedGraph graph = MarkedGraphBuilder(1).build([](std::uint32_t) { return "path"; });
  class OnCpu final : public Executor {
    void run(std::uint32_t, std::int64_t, int, int) override {}
  } executor;
  TestDevice device;
  const auto queue = device.make_queue();
  Dispatcher dispatcher(graph, executor, {Lane::on(*queue)});
  dispatcher.admit(1);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(text_of_cause(dispatcher.failure()->cause),
            "[dispatcher] operator 0 runs on a queue, and its executor has none");
}

TEST(DispatcherQueueLimitsTest, EdgesMustFitTheirLanes) {
  class OnCpu final : public Executor {
    void run(std::uint32_t, std::int64_t, int, int) override {}
  } executor;
  const auto make = [&](EdgeTiming timing, const std::vector<Lane>& lanes) {
    MarkedGraphBuilder builder(2);
    builder.set_lane(1, 1);
    builder.add_edge({0, 1, 0, EdgeKind::value, timing});
    const MarkedGraph graph = builder.build([](std::uint32_t) { return "path"; });
    Dispatcher dispatcher(graph, executor, lanes);
  };
  TestDevice device;
  const auto first = device.make_queue();
  const auto second = device.make_queue();
  EXPECT_THROW(make(EdgeTiming::event, {Lane::cpu(1), Lane::on(*first)}), std::logic_error);
  EXPECT_THROW(make(EdgeTiming::issued, {Lane::on(*first), Lane::on(*second)}), std::logic_error);
  EXPECT_THROW(make(EdgeTiming::done, {Lane::cpu(1)}), std::logic_error);
  EXPECT_NO_THROW(make(EdgeTiming::event, {Lane::on(*first), Lane::on(*second)}));
}

}  // namespace
}  // namespace purine
