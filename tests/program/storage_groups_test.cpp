#include "purine/program/storage_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "purine/ops/concat.h"
#include "purine/ops/copy.h"
#include "purine/ops/sum_n.h"
#include "tests/program/check_plan.h"

namespace purine::program {
namespace {

using test::Mix;
using test::mix;

/// Operators, some of which compute in place or are views, slices of what they make and concatenations of
/// these, often of parts that end between the aligned offsets. With `ranks` some goes to rank 1 and back.
void build_random_ranges(Graph& graph, std::uint32_t seed, bool ranks = false) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  std::vector<Tensor> pool;
  // Mostly of the newest, so that much storage is free again while others come.
  const auto pick = [&] {
    const std::size_t from = below(8) == 0 || pool.size() < 6 ? pool.size() : 6;
    return pool[pool.size() - 1 - below(from)];
  };
  const auto extent = [&] {
    return static_cast<std::int64_t>(below(4) == 0 ? 1 + below(20) : 8 * (1 + below(4)));
  };
  pool.push_back(mix(graph, {}, {.outputs = {64}, .brings_samples = true}).output());
  std::vector<Variable> variables;
  for (int i = 0; i < 2; ++i) {
    variables.push_back(graph.variable("v" + std::to_string(i) + "x", {{16}, DType::i64},
                                       std::make_shared<Mix>(Mix::Options{.outputs = {16}})));
    pool.push_back(variables.back());
  }
  std::int64_t salt = 0;
  const std::size_t count = 14 + below(30);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor x = pick();
    const std::int64_t size = x.shape()[0];
    switch (below(ranks ? 9 : 7)) {
      case 7:
      case 8:
        pool.push_back(ops::copy(ops::copy(x, {1, DeviceKind::cpu, 0}), {0, DeviceKind::cpu, 0}));
        break;
      case 0:
      case 1: {
        std::vector<Tensor> parts = {x};
        while (parts.size() < 4 && below(4) != 0) parts.push_back(pick());
        pool.push_back(ops::concat(parts, 0));
        break;
      }
      case 2: {
        const auto begin = static_cast<std::int64_t>(below(static_cast<std::size_t>(size + 7) / 8)) * 8;
        pool.push_back(
            ops::slice(x, 0, begin,
                       begin + 1 + static_cast<std::int64_t>(below(static_cast<std::size_t>(size - begin)))));
        break;
      }
      case 3:
        pool.push_back(
            mix(graph, {x},
                {.salt = ++salt,
                 .outputs = {size},
                 .sharing = {{0, 0, below(3) == 0 ? Sharing::Kind::view : Sharing::Kind::overwrite}}})
                .output());
        break;
      default: {
        const std::vector<Tensor> inputs =
            below(2) == 0 ? std::vector<Tensor>{} : std::vector<Tensor>{x, pick()};
        pool.push_back(mix(graph, inputs, {.salt = ++salt, .outputs = {extent()}}).output());
      }
    }
  }
  for (const Variable variable : variables) {
    graph.set_next(variable,
                   mix(graph, {variable, pick()},
                       {.salt = ++salt, .outputs = {16}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
                       .output());
  }
  for (int i = 0; i < 4; ++i) {
    graph.watch(mix(graph, {pool[below(pool.size())], pool.back()}, {.salt = ++salt}).output());
  }
}

TEST(StorageGroupsTest, OrdersAllThatTouchesTheSameBytesWhereTensorsAreRangesOfOthers) {
  std::int64_t elided = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph;
    build_random_ranges(graph, seed);
    const MemoryOptions options{.slots = 1 + seed % 2, .distance = seed % 3 == 0 ? 1U : 6U};
    check_plan(graph, options);
    if (HasFatalFailure()) return;
    const MemoryPlan plan = plan_of(graph, options);
    elided += std::count(plan.elided.begin(), plan.elided.end(), true);
  }
  EXPECT_GT(elided, 300);
}

TEST(StorageGroupsTest, OrdersAllThatTouchesTheSameBytesWhereRangesAreSentAndReceived) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph;
    build_random_ranges(graph, seed, true);
    const std::uint32_t distance = seed % 3 == 0 ? 1 : 6;
    for (const std::size_t received_in_place : {std::size_t{1}, std::size_t{1} << 20U}) {
      check_plan(graph,
                 {.slots = 1 + seed % 2, .distance = distance, .received_in_place = received_in_place});
      if (HasFatalFailure()) return;
    }
  }
}

// What becomes of a gradient of 32 numbers at each of two ranks: each adds up a half, and sends it back.
void expect_all_reduce_in_the_gradients_bytes(const MemoryOptions& options, bool received_in_place) {
  const Location here{0, DeviceKind::cpu, 0};
  const Location there{1, DeviceKind::cpu, 0};
  for (const std::int32_t rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    Graph graph;
    const Variable v =
        graph.variable("v", {{32}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {32}}));
    const auto make_gradient = [&](Location location, std::int64_t salt) {
      const Tensor weight = ops::copy(v, location);
      const auto placement = graph.at(location);
      return mix(graph, {weight}, {.salt = salt, .outputs = {32}}).output();
    };
    const auto add_up = [&](Location location, Tensor x, Tensor y) {
      const auto placement = graph.at(location);
      return ops::sum_n({x, y});
    };
    const auto gather = [&](Location location, Tensor x, Tensor y) {
      const auto placement = graph.at(location);
      return ops::concat({ops::copy(x, location), ops::copy(y, location)}, 0);
    };
    const Tensor a = make_gradient(here, 1);
    const Tensor b = make_gradient(there, 2);
    const auto slice = [&](Tensor x, std::int64_t begin) {
      const auto placement = graph.at(x.location());
      return ops::slice(x, 0, begin, begin + 16);
    };
    const Tensor first = add_up(here, slice(a, 0), ops::copy(slice(b, 0), here));
    const Tensor second = add_up(there, ops::copy(slice(a, 16), there), slice(b, 16));
    const Tensor sum_here = gather(here, first, second);
    const Tensor sum_there = gather(there, first, second);
    graph.set_next(
        v,
        mix(graph, {v, sum_here}, {.outputs = {32}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output());
    const auto placement = graph.at(there);
    graph.watch(mix(graph, {sum_there}, {.salt = 3, .outputs = {1}}).output());
    check_plan(graph, options, rank);
    Lowered lowered = lower(WholeGraph(graph), {.rank = rank});
    assign_layouts(graph, lowered, false);
    const MemoryPlan plan = plan_memory(lowered, serial_order(lowered), options);
    const auto offset_of = [&](Tensor tensor) {
      const auto found = std::find_if(lowered.tensors.begin(), lowered.tensors.end(),
                                      [&](const LoweredTensor& t) { return t.origin == tensor.index(); });
      return plan.tensors[static_cast<std::size_t>(found - lowered.tensors.begin())].offset;
    };
    const std::size_t gradient = offset_of(rank == 0 ? a : b);
    EXPECT_EQ(offset_of(rank == 0 ? first : second), gradient + (rank == 0 ? 0U : 128U));
    EXPECT_EQ(offset_of(rank == 0 ? sum_here : sum_there), gradient);
    // Once the half that is sent has gone, the other one comes in its place, or is copied over it by the
    // concatenation.
    const std::string_view writer = received_in_place ? "receive" : "concat";
    const auto is_ordered = [&](const StorageOrder& order) {
      return lowered.operators[order.before].contract->type() == "send" &&
             lowered.operators[order.after].contract->type() == writer && order.delay == 0;
    };
    EXPECT_EQ(std::count_if(plan.orders.begin(), plan.orders.end(), is_ordered), 1);
    for (std::uint32_t op = 0; op < lowered.operators.size(); ++op) {
      if (lowered.operators[op].contract->type() != "concat") continue;
      EXPECT_EQ(plan.elided[op], received_in_place);
    }
    // The received half, besides the one that is added up, and at rank 1 the weights.
    EXPECT_EQ(plan.arenas[0].slot_bytes, (received_in_place ? 0U : 128U) + (rank == 0 ? 128U : 128U + 256U));
  }
}

TEST(StorageGroupsTest, AnAllReduceComputesInTheGradientsBytes) {
  expect_all_reduce_in_the_gradients_bytes({}, false);
}

TEST(StorageGroupsTest, ALargeSumIsReceivedInTheGradientsBytes) {
  expect_all_reduce_in_the_gradients_bytes({.received_in_place = 128}, true);
  expect_all_reduce_in_the_gradients_bytes({.received_in_place = 129}, false);
}

// An update that two ranks share: each overwrites half of the variable, and receives the other one. What else
// reads the variable does so before either, and what is sent has gone before the next update.
TEST(StorageGroupsTest, ADividedUpdateIsMadeInTheVariablesStorage) {
  const Location here{0, DeviceKind::cpu, 0};
  const Location there{1, DeviceKind::cpu, 0};
  Graph graph;
  std::vector<Variable> weights;
  std::vector<Tensor> gradients;
  for (const Location location : {here, there}) {
    const auto placement = graph.at(location);
    weights.push_back(graph.variable(location == here ? "here" : "there", {{32}, DType::i64},
                                     std::make_shared<Mix>(Mix::Options{.outputs = {32}})));
    gradients.push_back(mix(graph, {weights.back()}, {.salt = 1, .outputs = {16}}).output());
  }
  std::vector<Tensor> halves;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto placement = graph.at(rank == 0 ? here : there);
    const auto begin = static_cast<std::int64_t>(16 * rank);
    halves.push_back(mix(graph, {ops::slice(weights[rank], 0, begin, begin + 16), gradients[rank]},
                         {.outputs = {16}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
                         .output());
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Location location = rank == 0 ? here : there;
    const auto placement = graph.at(location);
    graph.set_next(weights[rank],
                   ops::concat({ops::copy(halves[0], location), ops::copy(halves[1], location)}, 0));
  }
  for (const std::int32_t rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    check_plan(graph, {}, rank);
    check_plan(graph, {.reuse = false}, rank);
    Lowered lowered = lower(WholeGraph(graph), {.rank = rank});
    assign_layouts(graph, lowered, false);
    const MemoryPlan plan = plan_memory(lowered, serial_order(lowered), {});
    EXPECT_EQ(plan.arenas[0].bytes, 128U);  // the gradient
    const LoweredVariable& variable = lowered.variables[static_cast<std::size_t>(rank)];
    ASSERT_EQ(variable.parts.size(), 2U);
    for (std::size_t part = 0; part < 2; ++part) {
      const TensorStorage& storage = plan.tensors[variable.parts[part]];
      EXPECT_EQ(storage.kind, TensorStorage::Kind::variable);
      EXPECT_EQ(storage.offset, static_cast<std::size_t>(rank));
      EXPECT_EQ(storage.begin, 128 * part);
    }
    EXPECT_EQ(std::count(plan.elided.begin(), plan.elided.end(), true), 2);  // the slice, the concatenation
    // The receive waits for the operator that makes the gradient of the whole variable.
    const std::uint32_t receive = lowered.tensors[variable.parts[rank == 0 ? 1 : 0]].producer;
    EXPECT_EQ(lowered.operators[receive].contract->type(), "receive");
    const std::uint32_t reader = lowered.tensors[variable.tensor].consumers.front();
    const StorageOrder order{reader, receive, 0};
    EXPECT_NE(std::find(plan.orders.begin(), plan.orders.end(), order), plan.orders.end());
  }
}

// The variable's next value at rank 1 is what rank 0 computed.
TEST(StorageGroupsTest, AVariableIsReceivedIntoItsStorage) {
  Graph graph;
  const auto draw = [] { return std::make_shared<Mix>(Mix::Options{.outputs = {10}}); };
  const Variable source = graph.variable("source", {{10}, DType::i64}, draw());
  graph.set_next(source, mix(graph, {source}, {.outputs = {10}}).output());
  const auto placement = graph.at({1, DeviceKind::cpu, 0});
  const Variable replica = graph.variable("replica", {{10}, DType::i64}, draw());
  graph.set_next(replica, ops::copy(source.next(), {1, DeviceKind::cpu, 0}));
  graph.watch(mix(graph, {replica}, {.salt = 1}).output());
  check_plan(graph, {}, 1);
  const Lowered lowered = lower(WholeGraph(graph), {.rank = 1});
  EXPECT_EQ(lowered.variables[1].parts, std::vector<std::uint32_t>{lowered.variables[1].next});
  for (const LoweredOperator& op : lowered.operators) EXPECT_NE(op.contract->type(), "assign");
}

// Half of it would be overwritten while the other half is computed from the whole.
TEST(StorageGroupsTest, ADividedUpdateThatReadsTheWholeVariableIsAssigned) {
  Graph graph;
  const Variable v =
      graph.variable("v", {{32}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {32}}));
  const auto half = [&](std::int64_t begin) {
    return mix(graph, {ops::slice(v, 0, begin, begin + 16), v},
               {.outputs = {16}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
        .output();
  };
  graph.set_next(v, ops::concat({half(0), half(16)}, 0));
  check_plan(graph, {});
  const Lowered lowered = lower(WholeGraph(graph));
  EXPECT_TRUE(lowered.variables[0].parts.empty());
  EXPECT_EQ(lowered.operators.back().contract->type(), "assign");
}

TEST(StorageGroupsTest, AConcatenationIsNotMadeWhereOthersStillRead) {
  Graph graph;
  const Tensor a = mix(graph, {}, {.salt = 1, .outputs = {16}}).output();
  const Tensor b = mix(graph, {}, {.salt = 2, .outputs = {8}}).output();
  const Tensor half = ops::slice(a, 0, 0, 8);
  const Tensor all = ops::concat({half, b}, 0);
  graph.watch(mix(graph, {a, all}, {.salt = 3}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.tensors[half.index()].offset, plan.tensors[a.index()].offset);
  EXPECT_NE(plan.tensors[all.index()].offset, plan.tensors[a.index()].offset);
}

TEST(StorageGroupsTest, WhatIsConcatenatedIsMadeWhereItBelongs) {
  Graph graph;
  const Tensor a = mix(graph, {}, {.salt = 1, .outputs = {8}}).output();
  const Tensor b = mix(graph, {}, {.salt = 2, .outputs = {16}}).output();
  const Tensor c = mix(graph, {}, {.salt = 3, .outputs = {3}}).output();
  const Tensor inner = ops::concat({a, b}, 0);
  const Tensor all = ops::concat({inner, c}, 0);
  graph.watch(mix(graph, {all}, {.salt = 4}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_TRUE(plan.elided[3]);
  EXPECT_TRUE(plan.elided[4]);
  const std::size_t begin = plan.tensors[all.index()].offset;
  EXPECT_EQ(plan.tensors[a.index()].offset, begin);
  EXPECT_EQ(plan.tensors[b.index()].offset, begin + 64);
  EXPECT_EQ(plan.tensors[inner.index()].offset, begin);
  EXPECT_EQ(plan.tensors[c.index()].offset, begin + 192);
}

TEST(StorageGroupsTest, PartsThatBeginBetweenAlignedOffsetsAreCopied) {
  Graph graph;
  const Tensor a = mix(graph, {}, {.salt = 1, .outputs = {3}}).output();
  const Tensor b = mix(graph, {}, {.salt = 2, .outputs = {16}}).output();
  const Tensor all = ops::concat({a, b}, 0);
  graph.watch(mix(graph, {ops::slice(all, 0, 3, 11)}, {.salt = 4}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_FALSE(plan.elided[2]);
  EXPECT_FALSE(plan.elided[3]);
  EXPECT_EQ(plan.tensors[a.index()].offset, plan.tensors[all.index()].offset);
  EXPECT_NE(plan.tensors[b.index()].offset, plan.tensors[all.index()].offset + 24);
}

TEST(StorageGroupsTest, ATensorLiesInOneConcatenationAlone) {
  Graph graph;
  const Tensor a = mix(graph, {}, {.salt = 1, .outputs = {8}}).output();
  const Tensor twice = ops::concat({a, a}, 0);
  const Tensor other = ops::concat({a, a}, 0);
  graph.watch(mix(graph, {twice, other}, {.salt = 4}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_EQ(plan.tensors[a.index()].offset, plan.tensors[twice.index()].offset);
  EXPECT_FALSE(plan.elided[1]);
  EXPECT_FALSE(plan.elided[2]);
}

TEST(StorageGroupsTest, ASliceOfWhatADataSourceBringsIsAViewOfEachSlot) {
  Graph graph;
  const Tensor x = mix(graph, {}, {.outputs = {32}, .brings_samples = true}).output();
  const Tensor half = ops::slice(x, 0, 16, 32);
  graph.watch(mix(graph, {half}, {}).output());
  const MemoryPlan plan = plan_of(graph);
  EXPECT_TRUE(plan.elided[1]);
  EXPECT_EQ(plan.tensors[half.index()].offset, plan.tensors[x.index()].offset + 128);
  EXPECT_EQ(plan.tensors[half.index()].slots, 2U);
  EXPECT_EQ(plan.tensors[half.index()].stride, 256U);
  EXPECT_NE(std::find(plan.orders.begin(), plan.orders.end(), StorageOrder{2, 0, 2}), plan.orders.end());
}

}  // namespace
}  // namespace purine::program
