#include "purine/sim/accelerator.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "purine/program/marked_graph.h"
#include "purine/runtime/dispatcher.h"
#include "tests/sim/units.h"
#include "tests/support/error_text.h"

namespace purine::sim {
namespace {

constexpr Location where{0, DeviceKind::sim, 0};
// Notes when a queue reaches a point.
class Points final : public CompletionListener {
 public:
  explicit Points(const VirtualTime& time) : time_(time) {}
  void completed(std::uint64_t, std::exception_ptr) override { times.push_back(time_.now()); }
  std::vector<std::int64_t> times;

 private:
  const VirtualTime& time_;
};

void run(VirtualTime& time) {
  while (time.advance()) {
  }
}

TEST(SimulatedQueueTest, WorkFollowsWorkAndLaunchesPassMeanwhile) {
  VirtualTime time;
  SimulatedDevice device(time, where, {.launch_seconds = 10e-6});
  const auto queue = device.make_queue();
  Points points(time);
  for (int i = 0; i < 5; ++i) {
    queue->launch({nullptr, 100e-6});
    queue->notify(points, 0);
  }
  run(time);
  EXPECT_EQ(points.times, std::vector<std::int64_t>({110 * us, 210 * us, 310 * us, 410 * us, 510 * us}));
  EXPECT_EQ(device.meter.overlap().computing, 500 * us);
}

TEST(SimulatedQueueTest, ShortWorkWaitsForItsLaunch) {
  VirtualTime time;
  SimulatedDevice device(time, where, {.launch_seconds = 10e-6});
  const auto queue = device.make_queue();
  Points points(time);
  for (int i = 0; i < 3; ++i) queue->launch({nullptr, 1e-6});
  queue->notify(points, 0);
  run(time);
  EXPECT_EQ(points.times, std::vector<std::int64_t>({31 * us}));
}

TEST(SimulatedQueueTest, AQueueWaitsForTheMarkThatWasThereWhenItWasTold) {
  VirtualTime time;
  SimulatedDevice device(time, where, {});
  const auto first = device.make_queue();
  const auto second = device.make_queue();
  const auto event = device.make_event();
  Points points(time);
  EXPECT_TRUE(event->query());
  first->launch({nullptr, 5e-6});
  first->record(*event);
  EXPECT_FALSE(event->query());
  second->wait(*event);
  first->launch({nullptr, 100e-6});
  first->record(*event);
  second->launch({nullptr, 1e-6});
  second->notify(points, 0);
  run(time);
  EXPECT_EQ(points.times, std::vector<std::int64_t>({6 * us}));
  EXPECT_TRUE(event->query());
}

TEST(SimulatedQueueTest, MovesTakeTurnsOnALinkAndOverlapWithWork) {
  VirtualTime time;
  SimulatedDevice device(time, where, {});
  Link link(time, 1e9, 2e-6);
  device.tell(link.meter);
  const auto compute = device.make_queue();
  const auto copies = device.make_queue();
  const auto others = device.make_queue();
  Points points(time);
  compute->launch({nullptr, 15e-6});
  for (Queue* queue : {copies.get(), others.get()}) {
    dynamic_cast<SimulatedQueue&>(*queue).move({&link}, 10'000);
    queue->notify(points, 0);
  }
  run(time);
  EXPECT_EQ(points.times, std::vector<std::int64_t>({12 * us, 24 * us}));
  const Overlap use = link.meter.overlap();
  EXPECT_EQ(use.moving, 24 * us);
  EXPECT_EQ(use.overlapped, 15 * us);
  EXPECT_EQ(use.exposed(), 9 * us);
  EXPECT_EQ(use.bytes, 20'000);
}

TEST(SimulatedQueueTest, TheSlowestLinkOfAWayCounts) {
  VirtualTime time;
  SimulatedDevice device(time, where, {});
  Link fast(time, 4e9, 0);
  Link slow(time, 1e9, 1e-6);
  const auto queue = device.make_queue();
  Points points(time);
  dynamic_cast<SimulatedQueue&>(*queue).move({&fast, &slow}, 8'000);
  queue->notify(points, 0);
  run(time);
  EXPECT_EQ(points.times, std::vector<std::int64_t>({9 * us}));
}

TEST(SimulatedDeviceTest, HasNoMemoryToGive) {
  VirtualTime time;
  SimulatedDevice device(time, where, {.memory_bytes = 1000});
  EXPECT_EQ(device.capacity(), 1000U);
  EXPECT_EQ(test::error_text([&] { device.allocate(1); }), "[simulated device] has no memory to give");
}

// A pipeline of S stages on queues of their own, each operator taking 1 ms: T iterations need S + T - 1 ms if
// the window holds S of them, and S * T ms if it holds one.
TEST(SimulatedDeviceTest, APipelineTakesTheTimeThatItShould) {
  constexpr std::uint32_t stages = 4;
  constexpr std::int64_t iterations = 20;
  class Costs final : public Executor {
   public:
    void issue(std::uint32_t, std::int64_t, Queue& queue) override { queue.launch({nullptr, 1e-3}); }
  } executor;
  for (const auto& [timing, window, milliseconds] :
       {std::tuple(EdgeTiming::done, 4, stages + iterations - 1),
        std::tuple(EdgeTiming::done, 1, stages * iterations),
        std::tuple(EdgeTiming::event, 4, stages + iterations - 1)}) {
    VirtualTime time;
    SimulatedDevice device(time, where, {});
    MarkedGraphBuilder builder(stages);
    std::vector<std::unique_ptr<Queue>> queues;
    std::vector<Lane> lanes;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      builder.set_lane(stage, stage);
      builder.set_cost(stage, 1e-3);
      if (stage > 0) builder.add_edge({stage - 1, stage, 0, EdgeKind::value, timing});
      queues.push_back(device.make_queue());
      lanes.push_back(Lane::on(*queues.back(), 2));
    }
    const MarkedGraph graph = builder.build([](std::uint32_t) { return "stage"; });
    std::int64_t executions = 0;
    DispatcherOptions options{.window = window, .clock = &time, .threads = false};
    options.trace = [&](const Execution& execution) {
      ++executions;
      EXPECT_EQ(execution.worker, -1);
      EXPECT_LT(execution.begin, execution.end);
    };
    Dispatcher dispatcher(graph, executor, lanes, options);
    dispatcher.admit(iterations);
    do {
      dispatcher.issue_ready();
    } while (time.advance());
    EXPECT_EQ(dispatcher.finished(), iterations);
    EXPECT_EQ(executions, iterations * stages);
    EXPECT_EQ(time.now(), milliseconds * 1'000'000);
  }
}

}  // namespace
}  // namespace purine::sim
