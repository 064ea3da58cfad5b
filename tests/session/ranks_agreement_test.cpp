// What sessions over several ranks have in common, and what they say where it differs.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "purine/session/session.h"
#include "tests/session/exchange.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::at_ranks;
using test::build_exchange;
using test::cpu;
using test::make_runtime;
using test::mix_at;

/// What sessions over so many ranks say, by rank, of the graphs that `build(graph, rank)` makes.
std::vector<std::string> session_errors(int ranks, const std::function<void(Graph&, int)>& build) {
  const Watchdog watchdog;
  net::InProcessHub hub(ranks);
  return at_ranks(hub, ranks, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build(graph, endpoint.rank());
    const Session session(*runtime, graph);
  });
}

TEST(RanksAgreementTest, DifferentGraphsAreRefusedWithTheFirstVertexThatDiffers) {
  const auto errors = session_errors(3, [](Graph& graph, int rank) {
    build_exchange(graph, 3);
    mix_at(graph, cpu(0), {}, {.salt = rank == 2 ? 7 : 8, .outputs = {3}});
    for (int i = 0; i < rank; ++i) mix_at(graph, cpu(0), {}, {});
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              "[session] mix: rank 0 has 'mix = mix() {salt=8} -> i64[3] @0/cpu:0', rank 2 has 'mix = mix() "
              "{salt=7} -> i64[3] @0/cpu:0'; hint: every process must build the same graph");
  }
}

TEST(RanksAgreementTest, AGraphThatEndsEarlierIsRefused) {
  const auto errors = session_errors(2, [](Graph& graph, int rank) {
    graph.input("x", {{2}, DType::i64});
    if (rank == 1) graph.input("y", {{2}, DType::i64});
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              "[session] y: rank 0 has 'nothing', rank 1 has 'input y: i64[2] @0/cpu:0'; hint: every "
              "process must build the same graph");
  }
}

TEST(RanksAgreementTest, AnotherTypeOfATensorIsADifference) {
  const auto errors = session_errors(2, [](Graph& graph, int rank) {
    graph.input("x", {{2}, rank == 0 ? DType::f32 : DType::f64});
  });
  EXPECT_EQ(
      errors[0],
      "[session] x: rank 0 has 'input x: f32[2] @0/cpu:0', rank 1 has 'input x: f64[2] @0/cpu:0'; hint: "
      "every process must build the same graph");
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(RanksAgreementTest, DifferentSeedsAndRunsAreRefused) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    const Session session(*runtime, graph, {.seed = static_cast<std::uint64_t>(endpoint.rank()) + 5});
  });
  EXPECT_EQ(errors[0],
            "[session] rank 0 has seed 5, rank 1 has seed 6; hint: every process must have the same");
  EXPECT_EQ(errors[0], errors[1]);
  errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    Session session(*runtime, graph);
    session.run_steps(endpoint.rank() == 0 ? 10 : 11);
  });
  EXPECT_EQ(errors[0],
            "[session] rank 0 runs iterations 0 to 9, rank 1 runs iterations 0 to 10; hint: every "
            "process must make the same runs");
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(RanksAgreementTest, AMissingRankIsNamed) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  build_exchange(graph, 2);
  try {
    const Session session(runtime, graph);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[session] the graph uses 1/cpu:0, and the run has 1 process; hint: start one process a rank");
  }
}

TEST(RanksAgreementTest, WhatAnotherRankWatchesIsReadThere) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    const auto runtime = make_runtime(endpoint, 1);
    Graph graph;
    build_exchange(graph, 2);
    Session session(*runtime, graph);
    for (const Step& step : session.run({.steps = 1})) {
      EXPECT_EQ(step.has(graph.watched()[0]), endpoint.rank() == 0);
      EXPECT_FALSE(step.has(graph.tensor(0)));
      if (endpoint.rank() == 0) continue;
      try {
        step.value(graph.watched()[0]);
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_STREQ(
            error.what(),
            "[step] update_0/mix_2: lies at 0/cpu:0, and this process is rank 1; hint: read it where "
            "Step::has says that it is");
      }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace purine
