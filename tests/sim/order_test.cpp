// A simulation runs a graph's operators in the order of a session.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/models/lenet.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"
#include "purine/sim/simulation.h"
#include "tests/support/watchdog.h"

namespace purine::sim {
namespace {

// What a session with one worker has run, and what a simulation of the same graph runs, whose costs are those
// of the session's trace.
TEST(SimulatedOrderTest, LeNetRunsAsInASession) {
  const Watchdog watchdog;
  constexpr std::int64_t steps = 6;
  Graph graph;
  const Tensor image = graph.input("image", {{4, 1, 28, 28}, DType::f32});
  const Tensor label = graph.input("label", {{4}, DType::i64});
  const Tensor loss = ops::softmax_cross_entropy(models::lenet(image, 10), label, "loss");
  optim::momentum(loss, {.learning_rate = 0.01});
  graph.watch(loss);

  std::vector<std::string> ran;
  trace::Trace trace;
  Runtime runtime({.workers = 1});
  SessionOptions options;
  options.trace = [&](const RanEvent& event) {
    while (trace.operators.size() < event.program->operator_count()) {
      const auto op = static_cast<std::uint32_t>(trace.operators.size());
      trace.operators.push_back({event.program->path(op), std::string(event.program->type(op)),
                                 event.program->location(op).text(), event.program->shapes(op)});
    }
    trace.events.push_back({event.op, event.part, 0, event.iteration, event.begin, event.end});
    ran.push_back(fmt::format("{} {} {}", event.program->path(event.op), event.iteration, event.part));
  };
  {
    Session session(runtime, graph, options);
    session.feed(image, [](std::int64_t, std::span<std::byte> bytes) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    });
    session.feed(label, [](std::int64_t, std::span<std::byte> bytes) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    });
    session.run_steps(steps);
  }
  const CostTable costs = CostTable::from_trace(trace);
  const Cluster cluster = parse_cluster(
      "[cpu.a]\ncores = 1\nf32_gflops = 1\nmemory_gb_per_s = 1\nmemory_gib = 1\n"
      "[card.a]\ngbit_per_s = 1\n[[host]]\ncpu = \"a\"\ncard = \"a\"\n",
      "one");
  const SimulationResult result =
      simulate(graph, cluster, {.warm_up = 0, .steps = steps - 1, .costs = &costs, .trace = true});
  EXPECT_EQ(result.measured, result.computing);
  std::vector<std::string> simulated;
  for (const trace::OperatorEvent& event : result.traces.front().events) {
    simulated.push_back(
        fmt::format("{} {} {}", result.traces.front().operators[event.op].path, event.iteration, event.part));
  }
  // The simulation's trace leaves out the last iteration, which only keeps the ones before it company.
  std::erase_if(ran, [&](const std::string& instance) {
    return instance.find(fmt::format(" {} ", steps - 1)) != std::string::npos;
  });
  EXPECT_EQ(simulated, ran);
}

}  // namespace
}  // namespace purine::sim
