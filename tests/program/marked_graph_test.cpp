#include "purine/program/marked_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "purine/core/error.h"
#include "purine/core/random.h"

namespace purine {
namespace {

std::string letter(std::uint32_t op) {
  return "net/" + std::string(1, static_cast<char>('a' + op));
}

// Edges by operator number: (from, to, tokens).
std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> edges_of(const MarkedGraph& graph) {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> result;
  for (std::uint32_t position = 0; position < graph.operator_count(); ++position) {
    for (const MarkedGraph::Edge& edge : graph.edges(position)) {
      result.emplace_back(graph.operator_at(position), graph.operator_at(edge.to()), edge.tokens());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::uint32_t> order_of(const MarkedGraph& graph) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t position = 0; position < graph.operator_count(); ++position) {
    order.push_back(graph.operator_at(position));
  }
  return order;
}

TEST(MarkedGraphTest, NamesTheCycleWithoutTokens) {
  MarkedGraphBuilder builder(6);
  builder.add_edge({0, 1, 0});
  builder.add_edge({1, 2, 0});
  builder.add_edge({2, 3, 0});
  builder.add_edge({3, 1, 0, EdgeKind::order});
  builder.add_edge({3, 4, 0});  // after the cycle: not part of it
  builder.add_edge({4, 5, 0});
  try {
    builder.build(letter);
    FAIL() << "a graph that deadlocks was built";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[program] operators wait for each other within an iteration: net/b -> net/c -> net/d -> net/b; "
        "hint: an edge of the cycle must hold a token (a value of the last iteration, or a free slot)");
  }
}

TEST(MarkedGraphTest, NamesAnOperatorThatWaitsForItself) {
  MarkedGraphBuilder builder(2);
  builder.add_edge({1, 1, 0});
  try {
    builder.build(letter);
    FAIL() << "a graph that deadlocks was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("within an iteration: net/b -> net/b;"), std::string::npos)
        << error.what();
  }
}

TEST(MarkedGraphTest, ShortensALongCycle) {
  MarkedGraphBuilder builder(20);
  for (std::uint32_t op = 0; op < 20; ++op) builder.add_edge({op, (op + 1) % 20, 0});
  try {
    builder.build(letter);
    FAIL() << "a graph that deadlocks was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("net/k -> net/l -> (8 more) -> net/a;"), std::string::npos)
        << error.what();
  }
}

TEST(MarkedGraphTest, TakesACycleThatHoldsAToken) {
  MarkedGraphBuilder builder(3);
  builder.add_edge({0, 1, 0});
  builder.add_edge({1, 2, 0});
  builder.add_edge({2, 0, 1});
  const MarkedGraph graph = builder.build(letter);
  EXPECT_EQ(graph.operator_count(), 3U);
  EXPECT_EQ(graph.largest_tokens(), 1U);
  // Only the first one starts without a token-free edge.
  ASSERT_EQ(graph.sources().size(), 1U);
  EXPECT_EQ(graph.operator_at(graph.sources()[0]), 0U);
}

// The example of the header: a = 1, b = 2 seconds.
TEST(MarkedGraphTest, StartsAreLatestOnesOverTwoIterations) {
  MarkedGraphBuilder builder(2);
  builder.set_cost(0, 1);
  builder.set_cost(1, 2);
  builder.add_edge({0, 1, 0});
  builder.add_edge({1, 0, 1});
  const MarkedGraph graph = builder.build(letter);
  EXPECT_EQ(graph.start(graph.position_of(0)), 0.0F);
  EXPECT_EQ(graph.start(graph.position_of(1)), 1.0F);
  EXPECT_EQ(graph.period(), 3.0F);
}

// Two layers, forward f1 f2, backward b2 b1 (activations), weight gradients with updates w2 and w1. The
// gradient of the first layer is made last and needed first: its update goes before the second layer's,
// though that one was ready earlier.
TEST(MarkedGraphTest, TheFirstLayersUpdateIsMoreUrgentThanTheLasts) {
  enum : std::uint32_t { f1, f2, b2, w2, w1, count };
  MarkedGraphBuilder builder(count);
  for (std::uint32_t op = 0; op < count; ++op) builder.set_cost(op, 1);
  builder.add_edge({f1, f2, 0});
  builder.add_edge({f2, b2, 0});
  builder.add_edge({f2, w2, 0});
  builder.add_edge({b2, w1, 0});
  builder.add_edge({w1, f1, 1});  // the next iteration's first operator
  builder.add_edge({w2, f2, 1});
  const MarkedGraph graph = builder.build(letter);
  EXPECT_EQ(order_of(graph), (std::vector<std::uint32_t>{f1, f2, b2, w1, w2}));
  // Iteration 1 takes f1 f2 b2 w1; w2 must be done one before f2 of it: 5 starts f2, so w2 starts at 4.
  EXPECT_EQ(graph.start(graph.position_of(w1)), 3.0F);
  EXPECT_EQ(graph.start(graph.position_of(w2)), 4.0F);
  EXPECT_EQ(graph.period(), 5.0F);  // the lane's load: one operator at a time

  builder.set_first_come_first_served();
  const MarkedGraph in_turn = builder.build(letter);
  EXPECT_EQ(order_of(in_turn), (std::vector<std::uint32_t>{f1, f2, b2, w2, w1}));
  EXPECT_EQ(in_turn.start(in_turn.position_of(w2)), 2.0F);
  EXPECT_EQ(in_turn.period(), 5.0F);
}

// Layers 1 and 2: forwards f1 f2; gradients d2, and from it w2 and w1, each of 1; what is sent of w2 by six
// sends and of w1 by one, each of 2, before the next iteration's f2 and f1. By the paths w1 is more urgent
// than w2. But the line has 14 to do, and waits for w2 alone.
TEST(MarkedGraphTest, WhatTheLineWaitsForIsUrgent) {
  enum : std::uint32_t { f1, f2, d2, w2, w1, s1, s2, sends = 6, count = s2 + sends };
  const auto make = [&](bool one_line) {
    MarkedGraphBuilder builder(count);
    for (const std::uint32_t op : {f1, f2, d2, w2, w1}) builder.set_cost(op, 1);
    builder.add_edge({f1, f2, 0});
    builder.add_edge({f2, d2, 0});
    builder.add_edge({f2, w2, 0});
    builder.add_edge({d2, w1, 0});
    builder.add_edge({w1, s1, 0});
    builder.add_edge({s1, f1, 1});
    for (std::uint32_t i = 0; i < sends; ++i) {
      builder.add_edge({w2, s2 + i, 0});
      builder.add_edge({s2 + i, f2, 1});
    }
    for (std::uint32_t op = s1; op < count; ++op) {
      builder.set_cost(op, 2);
      builder.set_lane(op, 1);
      if (one_line) builder.set_on_line(op);
    }
    return builder.build(letter);
  };
  // Times from the end of two iterations backwards.
  const auto tail = [](const MarkedGraph& graph, std::uint32_t op) {
    return graph.start(graph.position_of(f1)) - graph.start(graph.position_of(op));
  };
  const MarkedGraph paths = make(false);
  EXPECT_EQ(tail(paths, d2) - tail(paths, w2), 2.0F);  // in the order f1 f2 d2 w1 w2
  EXPECT_EQ(tail(paths, w1) - tail(paths, w2), 1.0F);

  // The second iteration ends with s2 … s2, s1: 14; before them w2, f2, f1: 17. In the first, s1 ends 17
  // before the end, at f1; it is the last on the line, and the others take 12 more: 2 + 12 + 17 are behind
  // w2.
  const MarkedGraph line = make(true);
  EXPECT_EQ(tail(line, w2), -2.0F);   // f1, f2, then w2 at once: 32 of 34
  EXPECT_EQ(tail(line, w1), -14.0F);  // 20 of 34
  EXPECT_EQ(tail(line, d2), -13.0F);
  EXPECT_EQ(tail(line, s1) - tail(line, s2), 1.0F);  // among sends, by what waits for them
  for (std::uint32_t i = 1; i < sends; ++i) EXPECT_EQ(tail(line, s2 + i), tail(line, s2));
}

TEST(MarkedGraphTest, ThePeriodIsAtLeastTheLoadOfALane) {
  MarkedGraphBuilder builder(4);
  for (std::uint32_t op = 0; op < 4; ++op) builder.set_cost(op, 1);
  builder.set_lane(3, 1);
  EXPECT_EQ(builder.build(letter).period(), 3.0F);
  builder.set_parallelism(0, 2);
  EXPECT_EQ(builder.build(letter).period(), 1.5F);
}

TEST(MarkedGraphTest, PositionsFollowLaneThenStartThenOperator) {
  MarkedGraphBuilder builder(5);
  builder.set_lane(0, 1);
  builder.set_lane(3, 1);
  builder.set_cost(4, 2);  // longest: starts at 0, the others later
  builder.set_cost(1, 1);
  const MarkedGraph graph = builder.build(letter);
  EXPECT_EQ(order_of(graph), (std::vector<std::uint32_t>{4, 1, 2, 0, 3}));
  EXPECT_EQ(graph.lane_count(), 2U);
  EXPECT_EQ(graph.lane_begin(0), 0U);
  EXPECT_EQ(graph.lane_begin(1), 3U);
  EXPECT_EQ(graph.lane_begin(2), 5U);
  for (std::uint32_t position = 0; position < 5; ++position) {
    EXPECT_EQ(graph.lane_at(position), position < 3 ? 0U : 1U);
    EXPECT_EQ(graph.position_of(graph.operator_at(position)), position);
  }
}

TEST(MarkedGraphTest, EqualEdgesBecomeOneOfTheStricterSort) {
  MarkedGraphBuilder builder(2);
  builder.set_lane(1, 1);
  builder.add_edge({0, 1, 0, EdgeKind::order, EdgeTiming::event});
  builder.add_edge({0, 1, 0, EdgeKind::value, EdgeTiming::issued});
  builder.add_edge({1, 0, 1, EdgeKind::order, EdgeTiming::done});
  const MarkedGraph graph = builder.build(letter);
  const auto edges = graph.edges(graph.position_of(0));
  ASSERT_EQ(edges.size(), 1U);
  EXPECT_EQ(edges[0].to(), graph.position_of(1));
  EXPECT_EQ(edges[0].kind(), EdgeKind::value);
  EXPECT_EQ(edges[0].timing(), EdgeTiming::event);
  EXPECT_EQ(graph.needs(graph.position_of(1)), 1U);
}

TEST(MarkedGraphTest, AddsAnEdgeToItselfWhereNothingElseKeepsAnOperatorFromOverlappingItself) {
  MarkedGraphBuilder builder(4);
  builder.add_edge({0, 1, 0});
  builder.add_edge({1, 0, 1});  // 0 and 1 alternate
  builder.add_edge({1, 2, 0});
  builder.add_edge({2, 1, 2});  // two slots: 2 may be two behind, so nothing orders its own firings
  builder.add_edge({3, 3, 1, EdgeKind::value});
  using Edge = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  EXPECT_EQ(edges_of(builder.build(letter)),
            (std::vector<Edge>{{0, 1, 0}, {1, 0, 1}, {1, 2, 0}, {2, 1, 2}, {2, 2, 1}, {3, 3, 1}}));
}

TEST(MarkedGraphTest, EdgesThatPassAtIssueComeFirst) {
  MarkedGraphBuilder builder(4);
  builder.set_lane(2, 1);
  builder.set_lane(3, 2);
  builder.add_edge({0, 3, 0, EdgeKind::value, EdgeTiming::done});
  builder.add_edge({0, 2, 1, EdgeKind::order, EdgeTiming::event});
  builder.add_edge({0, 1, 0, EdgeKind::value, EdgeTiming::issued});
  const MarkedGraph graph = builder.build(letter);
  std::vector<EdgeTiming> timings;
  for (const auto& edge : graph.edges(graph.position_of(0))) timings.push_back(edge.timing());
  EXPECT_EQ(timings, (std::vector<EdgeTiming>{EdgeTiming::issued, EdgeTiming::event, EdgeTiming::done,
                                              EdgeTiming::done}));  // the last one to itself
  const auto waits = graph.event_waits(graph.position_of(2));
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].from, graph.position_of(0));
  EXPECT_EQ(waits[0].tokens, 1U);
  EXPECT_TRUE(graph.event_waits(graph.position_of(1)).empty());
}

TEST(MarkedGraphTest, AnEmptyGraphIsOne) {
  const MarkedGraph graph = MarkedGraphBuilder(0).build(letter);
  EXPECT_EQ(graph.operator_count(), 0U);
  EXPECT_EQ(graph.lane_count(), 1U);
  EXPECT_TRUE(graph.sources().empty());
}

// Firing every operator of a random graph in order of position, iteration after iteration, must find all
// tokens there if latest starts follow the edges; and needs() must be the edges that enter, and one for
// sources.
TEST(MarkedGraphTest, PositionsFollowTheEdgesAndNeedsCountThem) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Random random(seed, 0, 0);
    constexpr std::uint32_t count = 200;
    MarkedGraphBuilder builder(count);
    for (std::uint32_t op = 0; op < count; ++op) builder.set_cost(op, 1 + random.uniform(op));
    for (std::uint32_t edge = 0; edge < 600; ++edge) {
      const auto a = static_cast<std::uint32_t>(random.below(1000 + 3 * edge, count));
      const auto b = static_cast<std::uint32_t>(random.below(1001 + 3 * edge, count));
      const auto tokens = static_cast<std::uint32_t>(random.below(1002 + 3 * edge, 3));
      if (tokens == 0 && a == b) continue;
      builder.add_edge({tokens == 0 ? std::min(a, b) : a, tokens == 0 ? std::max(a, b) : b, tokens});
    }
    const MarkedGraph graph = builder.build(letter);
    std::map<std::uint32_t, std::uint32_t> entering;
    std::map<std::uint32_t, std::uint32_t> without_token;
    for (std::uint32_t position = 0; position < count; ++position) {
      for (const auto& edge : graph.edges(position)) {
        ++entering[edge.to()];
        if (edge.tokens() > 0) continue;
        ++without_token[edge.to()];
        EXPECT_LT(position, edge.to());
        EXPECT_LE(graph.start(position), graph.start(edge.to()));
      }
    }
    std::vector<std::uint32_t> sources;
    for (std::uint32_t position = 0; position < count; ++position) {
      const bool source = without_token[position] == 0;
      if (source) sources.push_back(position);
      EXPECT_EQ(graph.needs(position), entering[position] + (source ? 1 : 0));
    }
    EXPECT_TRUE(std::ranges::equal(graph.sources(), sources));
  }
}

// A training step has about as many tensors as operators, and about 3 inputs an operator, each with a credit
// back: the graph's share of the 150 bytes that a vertex may take.
TEST(MarkedGraphTest, TakesFewBytesAVertex) {
  constexpr std::uint32_t count = 10'000;
  const Random random(3, 0, 0);
  MarkedGraphBuilder builder(count);
  for (std::uint32_t op = 1; op < count; ++op) {
    for (std::uint32_t input = 0; input < 3; ++input) {
      const auto from = static_cast<std::uint32_t>(random.below(std::uint64_t{op} * 3 + input, op));
      builder.add_edge({from, op, 0});
      builder.add_edge({op, from, 1, EdgeKind::order});
    }
  }
  const MarkedGraph graph = builder.build(letter);
  EXPECT_LE(graph.bytes(), 2 * count * 30);
}

}  // namespace
}  // namespace purine
