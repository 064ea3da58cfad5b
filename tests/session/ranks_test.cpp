// Sessions over several ranks, which are threads of this process.
#include "tests/support/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "purine/session/session.h"
#include "tests/session/exchange.h"
#include "tests/session/reference.h"
#include "tests/support/mix_operator.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using namespace std::chrono_literals;
using test::at_ranks;
using test::build_exchange;
using test::cpu;
using test::make_runtime;
using test::mix_at;
using test::read;
using test::Reference;

struct RandomCase {
  int ranks = 2;
  int workers = 2;
  bool accelerators = false;
};

class RanksTest : public testing::TestWithParam<RandomCase> {
 private:
  const Watchdog watchdog_;
};

INSTANTIATE_TEST_SUITE_P(All, RanksTest,
                         testing::Values(RandomCase{2, 1, false}, RandomCase{2, 4, true},
                                         RandomCase{3, 2, true}, RandomCase{4, 1, false},
                                         RandomCase{4, 2, true}, RandomCase{2, 16, false}),
                         [](const auto& value) {
                           return std::to_string(value.param.ranks) + "_ranks_" +
                                  std::to_string(value.param.workers) + "_workers" +
                                  (value.param.accelerators ? "_accelerators" : "");
                         });

// What is sent arrives in random order, and each rank has operators that wait for others, memory that is used
// again, and variables that are updated in place.
TEST_P(RanksTest, RandomGraphsGiveWhatOneOperatorAfterAnotherGives) {
  const int ranks = GetParam().ranks;
  const int workers = GetParam().workers;
  const bool accelerators = GetParam().accelerators;
  std::vector<Location> locations;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    locations.push_back(cpu(rank));
    if (accelerators) locations.push_back({rank, DeviceKind::emu, 0});
    if (accelerators && rank % 2 == 1) locations.push_back({rank, DeviceKind::cpu, 1});
  }
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    net::InProcessOptions network;
    if (seed % 3 != 0) network.shuffle_seed = seed;
    net::InProcessHub hub(ranks, network);
    std::atomic<int> compared{0};
    const auto errors = at_ranks(hub, ranks, [&](Endpoint& endpoint) {
      const auto runtime = make_runtime(endpoint, workers, locations);
      Graph graph;
      test::build_random_graph(graph, seed,
                               {.operators = 40,
                                .variables = 6,
                                .max_microseconds = seed % 3 == 0 ? 40 : 0,
                                .multiple_parts = seed % 2 == 0,
                                .locations = locations});
      Reference reference(graph);
      Session session(*runtime, graph,
                      {.window = 1 + static_cast<int>(seed % 4), .poison_freed = seed % 5 == 0});
      const Tensor watched = graph.watched()[0];
      for (int run = 0; run < 2; ++run) {
        for (const Step& step : session.run({.steps = 8})) {
          const double expected = static_cast<double>(reference.step(step.index));
          if (!step.has(watched)) continue;
          EXPECT_EQ(step.value(watched), expected) << "iteration " << step.index;
          ++compared;
        }
        for (const Variable variable : graph.variables()) {
          if (variable.location().rank != endpoint.rank()) continue;
          EXPECT_EQ(read(session, variable), reference.variable(variable)) << variable.path();
        }
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    EXPECT_EQ(compared, 16);
  }
}

/// The watched values of so many steps, run one operator after another.
std::vector<double> expected_values(int ranks, std::int64_t steps) {
  Graph graph;
  build_exchange(graph, ranks);
  Reference reference(graph);
  std::vector<double> values;
  for (std::int64_t t = 0; t < steps; ++t) values.push_back(static_cast<double>(reference.step(t)));
  return values;
}

TEST(RanksFailureTest, AKernelThatThrowsEndsTheRunAtAllRanks) {
  const Watchdog watchdog;
  net::InProcessHub hub(3);
  std::atomic<int> most{0};
  const auto errors = at_ranks(hub, 3, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 3, {.throws_at = 3});
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = 100}))
      most = std::max(most.load(), static_cast<int>(step.index));
  });
  EXPECT_LE(most, 2);
  const std::string cause = "[mix] rank_1/mix on 1/cpu:0: was told to fail (iteration 3)";
  EXPECT_EQ(errors[1], cause);
  for (const int rank : {0, 2}) {
    const std::string told =
        "[rank 1] at this process, " + cause + "; " + std::to_string(rank) + "/cpu:0 waited at ";
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)].substr(0, told.size()), told);
  }
}

TEST(RanksFailureTest, AKilledRankIsMissed) {
  const Watchdog watchdog;
  net::InProcessHub hub(3, {.stall_limit = 200ms});
  const auto errors = at_ranks(hub, 3, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 3);
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = 1000000})) {
      if (step.index == 4 && endpoint.rank() == 1) hub.kill(1);
    }
  });
  EXPECT_EQ(errors[1].substr(0, 36), "[rank 1] at this process, was killed");
  for (const int rank : {0, 2}) {
    const std::string& text = errors[static_cast<std::size_t>(rank)];
    const std::string copy = "update_" + std::to_string(rank) + (rank == 0 ? "/copy" : "/copy_2");
    EXPECT_EQ(text.substr(0, 56), "[rank 1] at this process, silent for longer than 0.2 s; ") << text;
    // It waits to receive from the rank, or for the rank to take something.
    EXPECT_TRUE(text.find("waited at " + copy + "/receive for " + copy + " from rank 1") !=
                    std::string::npos ||
                text.find("for rank 1 to take rank_") != std::string::npos)
        << text;
  }
}

TEST(RanksFailureTest, ARankThatPausesAndGoesOnChangesNothing) {
  const Watchdog watchdog;
  constexpr std::int64_t steps = 30;
  const std::vector<double> expected = expected_values(3, steps);
  net::InProcessHub hub(3, {.stall_limit = 30s});
  std::thread resumes;
  std::vector<double> values;
  const auto errors = at_ranks(hub, 3, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 3);
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = steps})) {
      if (endpoint.rank() == 0) values.push_back(step.value(graph.watched()[0]));
      if (step.index == 5 && endpoint.rank() == 1) {
        hub.pause(1);
        resumes = std::thread([&] {
          std::this_thread::sleep_for(100ms);
          hub.resume(1);
        });
      }
    }
  });
  resumes.join();
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_EQ(values, expected);
}

TEST(RanksFailureTest, ARankThatPausesForTooLongIsMissed) {
  const Watchdog watchdog;
  net::InProcessHub hub(2, {.stall_limit = 100ms});
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = 1000000})) {
      if (step.index == 5 && endpoint.rank() == 1) hub.pause(1);
    }
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.substr(0, 56), "[rank 1] at this process, silent for longer than 0.1 s; ") << error;
  }
}

TEST(RanksFailureTest, AProgramThatLeavesItsRunByAnExceptionEndsTheOthers) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = 1000000})) {
      if (step.index == 5 && endpoint.rank() == 1) throw std::runtime_error("the disk is full");
    }
  });
  EXPECT_EQ(errors[1], "the disk is full");
  EXPECT_EQ(errors[0].substr(0, 61), "[rank 1] at this process, left its run by an exception; 0/cpu");
}

TEST(RanksFailureTest, ARankThatCannotBeginEndsTheOthers) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const Location accelerator{1, DeviceKind::emu, 0};
    Graph graph;
    graph.watch(mix_at(graph, cpu(0), {mix_at(graph, accelerator, {}, {})}, {}));
    const auto runtime = make_runtime(endpoint, 1);
    Session session(*runtime, graph);
    session.run_steps(5);
  });
  const std::string cause =
      "[session] the graph uses 1/emu:0, which the runtime doesn't have; hint: name it in "
      "RuntimeOptions::devices, or --devices";
  EXPECT_EQ(errors[1], cause);
  EXPECT_EQ(errors[0], "[rank 1] at this process, " + cause);
}

/// Each device has too little memory; one cause is told.
TEST(RanksFailureTest, RanksThatCannotBeginAllTellOfTheFirst) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    Graph graph;
    std::vector<Tensor> made;
    std::vector<Location> devices;
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      devices.push_back({rank, DeviceKind::emu, 0});
      made.push_back(mix_at(graph, devices.back(), {}, {.outputs = {1 << 20}}));
    }
    graph.watch(mix_at(graph, cpu(0), made, {}));
    const auto runtime = make_runtime(endpoint, 1, devices);
    const Session session(*runtime, graph);
  });
  EXPECT_EQ(errors[0].substr(0, 17), "[emu] on 0/emu:0:") << errors[0];
  EXPECT_EQ(errors[1], "[rank 0] at this process, " + errors[0]);
}

/// How a rank ends its run early.
enum class Ending { stop, leave_the_loop, drain };

class RanksEndTest : public testing::TestWithParam<Ending> {};
INSTANTIATE_TEST_SUITE_P(Ways, RanksEndTest,
                         testing::Values(Ending::stop, Ending::leave_the_loop, Ending::drain));

// Wherever one rank ends its run, all end after the same iteration, and all go on from there.
TEST_P(RanksEndTest, AllRanksEndWhereOneDoes) {
  const Watchdog watchdog;
  for (int ending_rank = 0; ending_rank < 3; ++ending_rank) {
    SCOPED_TRACE("rank " + std::to_string(ending_rank));
    net::InProcessOptions network;
    network.shuffle_seed = ending_rank;
    net::InProcessHub hub(3, network);
    std::vector<std::int64_t> ends(3);
    std::vector<double> values;
    const auto errors = at_ranks(hub, 3, [&](Endpoint& endpoint) {
      const auto runtime = make_runtime(endpoint, 1);
      Graph graph;
      build_exchange(graph, 3);
      Session session(*runtime, graph);
      for (const Step& step : session.run({.steps = 1000000})) {
        if (step.index != 7 || endpoint.rank() != ending_rank) continue;
        if (GetParam() == Ending::stop) session.stop();
        if (GetParam() == Ending::drain) session.drain();
        if (GetParam() == Ending::leave_the_loop) break;
      }
      session.drain();
      ends[static_cast<std::size_t>(endpoint.rank())] = session.iteration();
      for (const Step& step : session.run({.steps = 1})) {
        if (endpoint.rank() == 0) values.push_back(step.value(graph.watched()[0]));
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(3));
    EXPECT_GE(ends[0], 8);
    EXPECT_LT(ends[0], 40);
    EXPECT_EQ(ends, std::vector<std::int64_t>(3, ends[0]));
    EXPECT_EQ(values, std::vector<double>{expected_values(3, ends[0] + 1).back()});
  }
}

// A session for evaluation runs within the loop of another one.
TEST(RanksRunsTest, RunsMayBeNested) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const std::vector<double> expected = expected_values(2, 12);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    Session session(*runtime, graph);
    Graph other_graph;
    build_exchange(other_graph, 2);
    Session other(*runtime, other_graph);
    std::size_t index = 0;
    for (const Step& step : session.run({.steps = 12})) {
      if (endpoint.rank() == 0) {
        EXPECT_EQ(step.value(graph.watched()[0]), expected[index++]);
      }
      if (step.index == 5 && endpoint.rank() == 1) session.stop();
      if (step.index % 3 == 0) other.run_steps(2);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// ---- Overlap ----------------------------------------------------------------------------------------------

// Each rank computes for 2 ms what it sends, which is 3 ms on its way, and for 4 ms with what it received:
// transfers lie under computation, and iterations under one another.
TEST(RanksOverlapTest, TransfersLieUnderComputationAndIterationsUnderOneAnother) {
  const Watchdog watchdog;
  constexpr std::int64_t steps = 12;
  net::InProcessHub hub(2, {.latency = 3ms});
  std::mutex mutex;
  std::vector<std::vector<RanEvent>> events(2);
  std::vector<std::map<std::uint32_t, std::string>> paths(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.rank());
    const auto runtime = make_runtime(endpoint, 2);
    Graph graph;
    std::vector<Tensor> made;
    for (std::int32_t here = 0; here < 2; ++here) {
      const auto scope = graph.scope("rank_" + std::to_string(here));
      made.push_back(mix_at(graph, cpu(here), {}, {.salt = here, .microseconds = 2000}));
      graph.watch(mix_at(graph, cpu(here), {}, {.salt = 5, .microseconds = 500}));
    }
    for (std::int32_t here = 0; here < 2; ++here) {
      const auto scope = graph.scope("use_" + std::to_string(here));
      graph.watch(mix_at(graph, cpu(here), made, {.salt = 6, .microseconds = 4000}));
    }
    Session session(*runtime, graph, {.trace = [&, rank](const RanEvent& event) {
      const std::lock_guard lock(mutex);
      events[rank].push_back(event);
    }});
    session.run_steps(steps);
    for (std::uint32_t op = 0; op < session.program().operator_count(); ++op) {
      paths[rank][op] = session.program().path(op);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    std::map<std::string, std::map<std::int64_t, RanEvent>> by_path;
    for (const RanEvent& event : events[rank]) by_path[paths[rank].at(event.op)][event.iteration] = event;
    const auto& sends = by_path.at("use_" + peer + "/copy/send");
    const auto& uses = by_path.at("use_" + std::to_string(rank) + "/mix");
    int under_computation = 0;
    int under_earlier_iterations = 0;
    for (std::int64_t t = 1; t < steps; ++t) {
      const RanEvent& send = sends.at(t);
      for (const auto& [path, executions] : by_path) {
        if (path.ends_with("send") || path.ends_with("receive")) continue;
        for (const auto& [iteration, event] : executions) {
          under_computation += event.begin < send.end && send.begin < event.end;
        }
      }
      under_earlier_iterations += send.begin < uses.at(t - 1).end;
    }
    // A few of them, whatever else the machine does meanwhile.
    EXPECT_GT(under_computation, 0);
    EXPECT_GT(under_earlier_iterations, 0);
  }
}

}  // namespace
}  // namespace purine
