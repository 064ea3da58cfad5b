#include "purine/program/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "purine/ops/copy.h"
#include "tests/program/check_plan.h"

namespace purine::program {
namespace {

using test::Mix;
using test::mix;

/// How many orders begin at a send; each of them must hold up nothing but the next version of what is sent.
int sends_that_only_their_own_value_waits_for(const Lowered& lowered, const MemoryPlan& plan) {
  int sends = 0;
  for (const StorageOrder& order : plan.orders) {
    const LoweredOperator& before = lowered.operators[order.before];
    if (before.contract->type() != "send") continue;
    ++sends;
    EXPECT_EQ(order.after, lowered.tensors[before.inputs[0]].producer);
    EXPECT_EQ(order.delay, 1U);
  }
  return sends;
}

TEST(MemoryPlanTest, OrdersAllThatTouchesTheSameBytesInRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    for (const std::uint32_t distance : {1U, 16U}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", distance " + std::to_string(distance));
      Graph graph;
      test::build_random_graph(graph, seed, {.operators = 12 + static_cast<int>(seed % 30), .variables = 4});
      check_plan(graph, {.slots = 1 + seed % 2, .distance = distance});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(MemoryPlanTest, OrdersTheSameAtEachOfSeveralRanks) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Location> locations = {{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}};
    if (seed % 2 == 0) locations.push_back({1, DeviceKind::emu, 0});
    Graph graph;
    test::build_random_graph(
        graph, seed, {.operators = 12 + static_cast<int>(seed % 30), .variables = 4, .locations = locations});
    for (std::int32_t rank = 0; rank < 2; ++rank) check_plan(graph, {.distance = 1 + seed % 16}, rank);
    if (HasFatalFailure()) return;
  }
}

TEST(MemoryPlanTest, GivesAChainTwoPlaces) {
  Graph graph;
  Tensor x = mix(graph, {}, {.outputs = {1000}}).output();
  for (int i = 0; i < 20; ++i) x = mix(graph, {x}, {.salt = i, .outputs = {1000}}).output();
  graph.watch(x);
  EXPECT_EQ(plan_of(graph).arenas[0].bytes, 2 * 8000U);
}

// A chain of which one tensor is sent to another rank: nothing but its own producer, an iteration later,
// waits until it has gone.
TEST(MemoryPlanTest, WhatIsSentSharesNoBytesWithWhatWaitsForNobody) {
  Graph graph;
  const Variable v =
      graph.variable("v", {{10}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {10}}));
  graph.set_next(v,
                 mix(graph, {v}, {.outputs = {10}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output());
  Tensor x = mix(graph, {v}, {.outputs = {1000}}).output();
  for (int i = 0; i < 40; ++i) {
    x = mix(graph, {x}, {.salt = i, .outputs = {1000}}).output();
    if (i == 3) graph.watch(ops::copy(x, {1, DeviceKind::cpu, 0}));
  }
  graph.watch(x);
  const Lowered lowered = lower(WholeGraph(graph), {.rank = 0});
  const MemoryPlan plan = plan_memory(lowered, serial_order(lowered), {});
  EXPECT_EQ(plan.arenas[0].bytes, 3 * 8000U);
  EXPECT_EQ(sends_that_only_their_own_value_waits_for(lowered, plan), 1);
}

// Gradients that go to rank 1 and come back, one after the other: none is made only when another one has
// gone, or in the next iteration any but itself.
TEST(MemoryPlanTest, WhatIsMadeHereWaitsForOtherRanksOverNoOthersStorage) {
  Graph graph;
  const Variable v =
      graph.variable("v", {{10}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {10}}));
  graph.set_next(v,
                 mix(graph, {v}, {.outputs = {10}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output());
  Tensor x = mix(graph, {v}, {.outputs = {1000}}).output();
  for (int i = 0; i < 10; ++i) {
    const Tensor gradient = mix(graph, {x}, {.salt = i, .outputs = {1000}}).output();
    const Tensor back =
        ops::copy(ops::copy(gradient, {1, DeviceKind::cpu, 0}), Location{0, DeviceKind::cpu, 0});
    graph.watch(mix(graph, {back}, {.salt = i}).output());
    x = mix(graph, {x}, {.salt = 100 + i, .outputs = {1000}}).output();
  }
  graph.watch(x);
  check_plan(graph, {.distance = 1});
  Lowered lowered = lower(WholeGraph(graph));
  assign_layouts(graph, lowered, false);
  const MemoryPlan plan = plan_memory(lowered, serial_order(lowered), {.distance = 1});
  EXPECT_EQ(sends_that_only_their_own_value_waits_for(lowered, plan), 10);
}

TEST(MemoryPlanTest, ComputesInPlaceWhereTheContractAllowsIt) {
  Graph graph;
  Tensor x = mix(graph, {}, {.outputs = {1000}}).output();
  for (int i = 0; i < 20; ++i) {
    x = mix(graph, {x}, {.salt = i, .outputs = {1000}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
            .output();
  }
  graph.watch(x);
  EXPECT_EQ(plan_of(graph).arenas[0].bytes, 8000U);
}

TEST(MemoryPlanTest, NeverOverwritesWhatAnotherReads) {
  Graph graph;
  const Tensor x = mix(graph, {}, {.outputs = {1000}}).output();
  const Tensor y =
      mix(graph, {x}, {.salt = 1, .outputs = {1000}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output();
  graph.watch(mix(graph, {x, y}, {.salt = 2, .outputs = {1000}}).output());
  EXPECT_GE(plan_of(graph).arenas[0].bytes, 3 * 8000U - 64);
}

TEST(MemoryPlanTest, AViewHasNothingToDoAndKeepsItsInputAlive) {
  Graph graph;
  const Tensor x = mix(graph, {}, {.outputs = {1000}}).output();
  const Tensor view =
      mix(graph, {x}, {.salt = 1, .outputs = {1000}, .sharing = {{0, 0, Sharing::Kind::view}}}).output();
  Tensor y = view;
  for (int i = 0; i < 40; ++i) y = mix(graph, {y}, {.salt = i, .outputs = {1000}}).output();
  graph.watch(mix(graph, {x, y}, {.salt = 3}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(std::count(plan.elided.begin(), plan.elided.end(), true), 1);
  EXPECT_TRUE(plan.elided[1]);
  EXPECT_EQ(plan.tensors[0].offset, plan.tensors[1].offset);
  EXPECT_EQ(plan.arenas[0].bytes, 3 * 8000U);
}

TEST(MemoryPlanTest, GivesDataSourcesTwoSlots) {
  Graph graph;
  const Tensor x = mix(graph, {}, {.outputs = {1000}, .brings_samples = true}).output();
  graph.watch(mix(graph, {x}, {}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.arenas[0].slot_bytes, 2 * 8000U);
  EXPECT_EQ(plan.tensors[0].slots, 2U);
  EXPECT_NE(std::find(plan.orders.begin(), plan.orders.end(), StorageOrder{1, 0, 2}), plan.orders.end());
}

TEST(MemoryPlanTest, UpdatesVariablesInTheirOwnStorageAfterAllReaders) {
  Graph graph;
  const Variable v =
      graph.variable("v", {{10}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {10}}));
  const Tensor reader = mix(graph, {v}, {.salt = 1}).output();
  const Tensor next =
      mix(graph, {v}, {.salt = 2, .outputs = {10}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output();
  graph.set_next(v, next);
  graph.watch(mix(graph, {reader}, {.salt = 3}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.tensors[0].kind, TensorStorage::Kind::variable);
  EXPECT_EQ(plan.tensors[2].kind, TensorStorage::Kind::variable);
  EXPECT_NE(std::find(plan.orders.begin(), plan.orders.end(), StorageOrder{0, 1, 0}), plan.orders.end());
}

TEST(MemoryPlanTest, CopiesAValueThatCannotBeComputedInTheVariable) {
  Graph graph;
  const auto initial = std::make_shared<Mix>(Mix::Options{.outputs = {10}});
  const Variable v = graph.variable("v", {{10}, DType::i64}, initial);
  const Variable w = graph.variable("w", {{10}, DType::i64}, initial);
  // Someone needs both the new and the old value.
  const Tensor next =
      mix(graph, {v}, {.salt = 2, .outputs = {10}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output();
  graph.watch(mix(graph, {next, v}, {.salt = 3}).output());
  graph.set_next(v, next);
  graph.set_next(w, v);
  const Lowered lowered = lower(WholeGraph(graph));
  int assigns = 0;
  for (const LoweredOperator& op : lowered.operators) assigns += op.contract->type() == "assign";
  EXPECT_EQ(assigns, 3);  // v's, what w takes aside, and w's
  check_plan(graph, {});
}

// Large gradients of four variables, one after the other; only then the graph has what checks each of them
// and updates its variable at a common rate.
TEST(MemoryPlanTest, AGradientIsCheckedAndTakenIntoItsVariableBeforeTheNextIsMade) {
  Graph graph;
  const Sharing in_place{0, 0, Sharing::Kind::overwrite};
  const auto initial = std::make_shared<Mix>(Mix::Options{.outputs = {1000}});
  std::vector<Variable> variables;
  for (int i = 0; i < 4; ++i) {
    variables.push_back(graph.variable("v" + std::to_string(i), {{1000}, DType::i64}, initial));
  }
  std::vector<Tensor> gradients;
  Tensor x = mix(graph, {}, {.outputs = {8}}).output();
  for (int i = 0; i < 4; ++i) {
    x = mix(graph, {x, variables[i]}, {.salt = i, .outputs = {8}}).output();
    gradients.push_back(mix(graph, {x}, {.salt = 10 + i, .outputs = {1000}}).output());
  }
  graph.watch(x);
  const Tensor rate = mix(graph, {}, {.salt = 20}).output();
  for (int i = 0; i < 4; ++i) {
    const Tensor checked =
        mix(graph, {gradients[i]}, {.salt = 30 + i, .outputs = {1000}, .sharing = {in_place}}).output();
    graph.set_next(variables[i], mix(graph, {variables[i], checked, rate},
                                     {.salt = 40 + i, .outputs = {1000}, .sharing = {in_place}})
                                     .output());
  }
  EXPECT_LT(plan_of(graph, {.distance = 0}).arenas[0].bytes, 8000U + 1000);
  check_plan(graph, {.distance = 0});
}

// Units of 64 bytes: a has the first 10, b the next 10. When c has taken 5 of a's, 15 are free at the end.
TEST(MemoryPlanTest, GrowsTheArenaOnlyByWhatIsMissingAtItsEnd) {
  Graph graph;
  const Tensor a = mix(graph, {}, {.outputs = {80}}).output();
  const Tensor b = mix(graph, {a}, {.salt = 1, .outputs = {80}}).output();
  const Tensor c = mix(graph, {b}, {.salt = 2, .outputs = {40}}).output();
  const Tensor d = mix(graph, {c}, {.salt = 3, .outputs = {160}}).output();
  graph.watch(mix(graph, {d}, {.salt = 4}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.tensors[3].offset, 5 * 64U);
  EXPECT_EQ(plan.arenas[0].bytes, 25 * 64U);
  check_plan(graph, {});
}

TEST(MemoryPlanTest, LeavesOutWhatNobodyNeeds) {
  Graph graph;
  const Tensor x = mix(graph, {}, {.outputs = {10}}).output();
  mix(graph, {x}, {.salt = 1, .outputs = {1000000}});
  graph.watch(mix(graph, {x}, {.salt = 2}).output());
  const Lowered lowered = lower(WholeGraph(graph));
  EXPECT_EQ(lowered.operators.size(), 3U);  // two, and the read
}

}  // namespace
}  // namespace purine::program
