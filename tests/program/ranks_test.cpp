// Each rank lowers its own part of a graph; together the parts are the graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "purine/ops/concat.h"
#include "purine/program/half_copy.h"
#include "purine/program/memory_plan.h"
#include "purine/program/program.h"
#include "tests/support/mix_operator.h"

namespace purine {
namespace {

using program::Lowered;
using program::MemoryPlan;
using program::none;
using program::StorageOrder;
using test::Mix;
using test::mix;

Location cpu(std::int32_t rank) {
  return {rank, DeviceKind::cpu, 0};
}

Tensor mix_at(Graph& graph, Location location, std::vector<Tensor> inputs, Mix::Options options) {
  for (Tensor& input : inputs) input = ops::copy(input, location);
  const auto placement = graph.at(location);
  return mix(graph, inputs, std::move(options)).output();
}

/// `path: inputs -> outputs` of all that a rank runs, with the slots of outputs in memory of their own.
std::vector<std::string> lines_of(Graph& graph, std::int32_t rank) {
  const Lowered lowered = program::lower(program::WholeGraph(graph), {.rank = rank});
  std::vector<std::string> lines;
  for (std::uint32_t op = 0; op < lowered.operators.size(); ++op) {
    const program::LoweredOperator& record = lowered.operators[op];
    std::string line = lowered.path(graph, op) + ": " + std::string(record.contract->type());
    if (const HalfCopy* half = as_half_copy(*record.contract)) line += " " + half->attributes();
    line += " at " + lowered.places[record.place].text();
    if (record.slots > 0) line += " x" + std::to_string(record.slots);
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(RanksLoweringTest, ACopyIsSentAtOneRankAndReceivedAtTheOther) {
  Graph graph;
  Variable weight;
  {
    const auto placement = graph.at(cpu(0));
    weight = graph.variable("weight", {{4}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {4}}));
  }
  const Tensor data = mix_at(graph, cpu(0), {}, {.outputs = {3}});                  // operator 0
  const Tensor made = mix_at(graph, cpu(1), {weight, data}, {});                    // copies 1 and 2
  graph.set_next(weight, mix_at(graph, cpu(0), {weight, made}, {.outputs = {4}}));  // copy 4
  graph.watch(made);
  EXPECT_EQ(lines_of(graph, 0),
            (Lines{"mix: mix at 0/cpu:0 x2", "copy/send: send peer=1 channel=1 at 0/cpu:0",
                   "copy_2/send: send peer=1 channel=2 at 0/cpu:0",
                   "copy_3/receive: receive peer=1 channel=4 at 0/cpu:0 x1", "mix_3: mix at 0/cpu:0",
                   "weight/assign: assign at 0/cpu:0"}));
  // What doesn't depend on the weight can arrive early.
  EXPECT_EQ(
      lines_of(graph, 1),
      (Lines{"copy/receive: receive peer=0 channel=1 at 1/cpu:0 x1",
             "copy_2/receive: receive peer=0 channel=2 at 1/cpu:0 x2", "mix_2: mix at 1/cpu:0",
             "copy_3/send: send peer=0 channel=4 at 1/cpu:0", "mix_2/host_read: host_read at 1/cpu:0"}));
  EXPECT_EQ(lines_of(graph, 2), Lines{});
}

TEST(RanksLoweringTest, WhatLiesOnAcceleratorsIsStagedOnTheirHosts) {
  Graph graph;
  const Location from{0, DeviceKind::emu, 1};
  const Tensor data = mix_at(graph, from, {}, {});
  std::vector<Tensor> made;
  for (std::int32_t rank = 1; rank < 3; ++rank) {
    made.push_back(mix_at(graph, {rank, DeviceKind::emu, 0}, {data}, {}));
    graph.watch(made.back());
  }
  EXPECT_EQ(lines_of(graph, 0), (Lines{"mix: mix at 0/emu:1", "mix/copy_to_0/cpu:0: copy at 0/cpu:0 x2",
                                       "copy/send: send peer=1 channel=1 at 0/cpu:0",
                                       "copy_2/send: send peer=2 channel=3 at 0/cpu:0"}));
  EXPECT_EQ(lines_of(graph, 2),
            (Lines{"copy_2/receive: receive peer=0 channel=3 at 2/cpu:0 x2", "copy_2: copy at 2/emu:0",
                   "mix_3: mix at 2/emu:0", "mix_3/copy_to_2/cpu:0: copy at 2/cpu:0",
                   "mix_3/host_read: host_read at 2/cpu:0"}));
}

// The reader of the old value needs, by way of another rank, what the update makes: in place it could never
// run.
TEST(RanksLoweringTest, AnUpdateThatAReaderNeedsThroughAnotherRankIsNotInPlace) {
  Graph graph;
  const Variable weight =
      graph.variable("weight", {{4}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {4}}));
  const Tensor next =
      mix_at(graph, cpu(0), {weight}, {.outputs = {4}, .sharing = {{0, 0, Sharing::Kind::overwrite}}});
  graph.set_next(weight, next);
  const Tensor elsewhere = mix_at(graph, cpu(1), {next}, {});
  graph.watch(mix_at(graph, cpu(0), {weight, elsewhere}, {}));
  const Lines lines = lines_of(graph, 0);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "weight/assign: assign at 0/cpu:0"), 1);
}

/// The waits within an iteration of all ranks' programs together; true if they have a cycle.
class Waits {
 public:
  void add_rank(Graph& graph, std::int32_t rank, const program::MemoryOptions& options) {
    Lowered lowered = program::lower(program::WholeGraph(graph), {.rank = rank});
    program::assign_layouts(graph, lowered, false);
    const MemoryPlan plan = program::plan_memory(lowered, program::serial_order(lowered), options);
    const auto base = static_cast<std::uint32_t>(after_.size());
    after_.resize(base + lowered.operators.size());
    for (const program::LoweredTensor& tensor : lowered.tensors) {
      if (tensor.producer == none) continue;
      for (const std::uint32_t consumer : tensor.consumers)
        after_[base + tensor.producer].push_back(base + consumer);
    }
    for (const StorageOrder& order : plan.orders) {
      if (order.delay == 0) after_[base + order.before].push_back(base + order.after);
      const HalfCopy* half = as_half_copy(*lowered.operators[order.after].contract);
      if (order.delay != 0) continue;
      ++reuses_;
      if (half == nullptr || half->side() != HalfCopy::Side::receive) continue;
      const std::uint32_t received = lowered.operators[order.after].outputs[0];
      EXPECT_NE(plan.tensors[received].kind, program::TensorStorage::Kind::slots)
          << "a receive into memory of its own waits within its iteration";
      ++waiting_receives_;
    }
    for (std::uint32_t op = 0; op < lowered.operators.size(); ++op) {
      const HalfCopy* half = as_half_copy(*lowered.operators[op].contract);
      if (half == nullptr) continue;
      (half->side() == HalfCopy::Side::send ? sends_ : receives_)[half->channel()] = base + op;
    }
  }

  bool cyclic() {
    EXPECT_EQ(sends_.size(), receives_.size());
    // A send and its receive wait for each other: one operator of both.
    std::map<std::uint32_t, std::uint32_t> send_of;
    for (const auto& [channel, send] : sends_) {
      const std::uint32_t receive = receives_.at(channel);
      send_of.emplace(receive, send);
      after_[send].insert(after_[send].end(), after_[receive].begin(), after_[receive].end());
      after_[receive].clear();
    }
    for (auto& targets : after_) {
      for (std::uint32_t& target : targets) {
        const auto send = send_of.find(target);
        if (send != send_of.end()) target = send->second;
      }
    }
    std::vector<std::uint32_t> waiting(after_.size(), 0);
    for (const auto& targets : after_) {
      for (const std::uint32_t target : targets) ++waiting[target];
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < after_.size(); ++i) {
      if (waiting[i] == 0) order.push_back(i);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::uint32_t target : after_[order[i]]) {
        if (--waiting[target] == 0) order.push_back(target);
      }
    }
    return order.size() != after_.size();
  }

  std::size_t exchanges() const { return sends_.size(); }
  int reuses() const { return reuses_; }
  int waiting_receives() const { return waiting_receives_; }

 private:
  std::vector<std::vector<std::uint32_t>> after_;
  std::map<std::uint32_t, std::uint32_t> sends_;
  std::map<std::uint32_t, std::uint32_t> receives_;
  int reuses_ = 0;
  int waiting_receives_ = 0;  // orders before receives into variables and gradients
};

TEST(RanksPlanTest, TheWaitsOfAllRanksTogetherHaveNoCycle) {
  std::size_t exchanges = 0;
  int reuses = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const std::int32_t ranks = 2 + static_cast<std::int32_t>(seed % 3);
    std::vector<Location> locations;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      locations.push_back(cpu(rank));
      if (seed % 4 == 3) locations.push_back({rank, DeviceKind::emu, 0});
    }
    Graph graph;
    test::build_random_graph(graph, seed,
                             {.operators = 20 + static_cast<int>(seed % 60),
                              .variables = 3 + static_cast<int>(seed % 7),
                              .locations = locations});
    Waits waits;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      waits.add_rank(graph, rank, {.distance = seed % 2 == 0 ? 1U : 16U});
    }
    EXPECT_FALSE(waits.cyclic()) << "seed " << seed;
    exchanges += waits.exchanges();
    reuses += waits.reuses();
  }
  EXPECT_GT(exchanges, 4000U);
  EXPECT_GT(reuses, 1000);
}

/// Layers at two ranks, each with a weight that its backward reads as well; the gradients' halves are added
/// up at one rank each, which updates its half of the weight and sends it to the other; or sends the sum, and
/// each updates all of the weight.
void build_updates(Graph& graph, int layers, bool divided) {
  const auto mix_here = [&](std::int32_t rank, std::vector<Tensor> inputs, Mix::Options options) {
    return mix_at(graph, cpu(rank), std::move(inputs), std::move(options));
  };
  std::vector<std::vector<Variable>> weights(2);
  std::vector<std::vector<Tensor>> gradients(2);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const auto placement = graph.at(cpu(rank));
    auto& own = weights[static_cast<std::size_t>(rank)];
    for (int i = 0; i < layers; ++i) {
      own.push_back(graph.variable("w" + std::to_string(i) + "of" + std::to_string(rank), {{32}, DType::i64},
                                   std::make_shared<Mix>(Mix::Options{.outputs = {32}})));
    }
    std::vector<Tensor> x = {mix(graph, {}, {.outputs = {8}}).output()};
    for (const Variable weight : own) x.push_back(mix(graph, {x.back(), weight}, {.outputs = {8}}).output());
    Tensor dx = x.back();
    for (int i = layers - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      gradients[static_cast<std::size_t>(rank)].push_back(
          mix(graph, {dx, x[at]}, {.salt = i, .outputs = {32}}).output());
      dx = mix(graph, {dx, own[at]}, {.salt = i, .outputs = {8}}).output();
    }
    graph.watch(dx);
  }
  for (int i = layers - 1; i >= 0; --i) {
    const auto layer = static_cast<std::size_t>(i);
    std::vector<Tensor> updated;
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      std::vector<Tensor> addends;
      for (std::size_t from = 0; from < 2; ++from) {
        const Tensor gradient = gradients[from][static_cast<std::size_t>(layers - 1) - layer];
        const auto placement = graph.at(gradient.location());
        addends.push_back(ops::slice(gradient, 0, 16 * rank, 16 * rank + 16));
      }
      const Tensor sum =
          divided
              ? mix_here(rank, addends, {.outputs = {16}})
              : mix_here(rank, addends, {.outputs = {16}, .sharing = {{rank, 0, Sharing::Kind::overwrite}}});
      if (!divided) {
        updated.push_back(sum);
        continue;
      }
      const auto placement = graph.at(cpu(rank));
      const Tensor half =
          ops::slice(weights[static_cast<std::size_t>(rank)][layer], 0, 16 * rank, 16 * rank + 16);
      updated.push_back(
          mix(graph, {half, sum}, {.outputs = {16}, .sharing = {{0, 0, Sharing::Kind::overwrite}}}).output());
    }
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      const auto placement = graph.at(cpu(rank));
      const Variable weight = weights[static_cast<std::size_t>(rank)][layer];
      const Tensor whole =
          ops::concat({ops::copy(updated[0], cpu(rank)), ops::copy(updated[1], cpu(rank))}, 0);
      graph.set_next(weight, divided ? whole
                                     : mix(graph, {weight, whole},
                                           {.outputs = {32}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
                                           .output());
    }
  }
}

TEST(RanksPlanTest, DividedUpdatesAreMadeInPlaceAndDoNotWaitInACycle) {
  for (const std::uint32_t distance : {1U, 16U}) {
    Graph graph;
    build_updates(graph, 4, true);
    Waits waits;
    for (std::int32_t rank = 0; rank < 2; ++rank) waits.add_rank(graph, rank, {.distance = distance});
    EXPECT_FALSE(waits.cyclic());
    // Each rank receives four halves, after the forward and backward operator that read the weight.
    EXPECT_EQ(waits.waiting_receives(), 2 * 4 * 2);
  }
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    Graph graph;
    build_updates(graph, 4, true);
    for (const program::LoweredOperator& op :
         program::lower(program::WholeGraph(graph), {.rank = rank}).operators) {
      EXPECT_NE(op.contract->type(), "assign");
    }
  }
}

TEST(RanksPlanTest, SumsAreReceivedInTheGradientsBytesAndDoNotWaitInACycle) {
  for (const std::uint32_t distance : {1U, 16U}) {
    Graph graph;
    build_updates(graph, 4, false);
    Waits waits;
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      waits.add_rank(graph, rank, {.distance = distance, .received_in_place = 128});
    }
    EXPECT_FALSE(waits.cyclic());
    // Each rank receives four halves of sums, after what made the gradient and what sent its half.
    EXPECT_EQ(waits.waiting_receives(), 2 * 4 * 2);
  }
}

// Rank 0 makes a then b, and rank 1 needs b at once in the next iteration, but a only later.
TEST(RanksPriorityTest, WhatIsNeededSoonerElsewhereIsSentFirst) {
  Graph graph;
  std::vector<Variable> weights;
  {
    const auto placement = graph.at(cpu(1));
    for (const char* name : {"late", "soon"}) {
      weights.push_back(
          graph.variable(name, {{4}, DType::i64}, std::make_shared<Mix>(Mix::Options{.outputs = {4}})));
    }
  }
  Tensor x = mix_at(graph, cpu(1), {weights[1]}, {.microseconds = 1000});
  x = mix_at(graph, cpu(1), {x, weights[0]}, {.microseconds = 1000});
  const Tensor a = mix_at(graph, cpu(0), {x}, {.outputs = {4}, .microseconds = 1000});
  const Tensor b = mix_at(graph, cpu(0), {a}, {.outputs = {4}, .microseconds = 1000});
  graph.set_next(weights[0], ops::copy(a, cpu(1)));
  graph.set_next(weights[1], ops::copy(b, cpu(1)));
  KernelRegistry kernels;
  test::register_mix(kernels);
  FreezeOptions options;
  options.kernels = {{DeviceKind::cpu, &kernels}};
  const Program program(graph, options);
  std::map<std::string, float> starts;
  for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
    starts[program.path(op)] = program.marked_graph().start(program.marked_graph().position_of(op));
  }
  EXPECT_LT(starts.at("copy_3/send") - starts.at("mix_4"), 2e-3F);
  EXPECT_LT(starts.at("copy_3/send"), starts.at("copy_2/send"));
}

TEST(RanksProgramTest, HasALaneOfItsOwnForTheNetwork) {
  Graph graph;
  const Tensor x = mix_at(graph, cpu(0), {}, {.outputs = {5}});
  graph.watch(mix_at(graph, cpu(1), {x}, {}));
  KernelRegistry kernels;
  test::register_mix(kernels);
  FreezeOptions options;
  options.kernels = {{DeviceKind::cpu, &kernels}};
  options.host_read = [](Tensor) { return make_kernel([](const KernelCall&) {}); };
  options.rank = 1;
  Program program(graph, options);
  ASSERT_EQ(program.lanes().size(), 2U);
  EXPECT_EQ(program.lanes()[0], (LaneUse{cpu(1), LaneKind::network}));
  EXPECT_EQ(program.lanes()[1], (LaneUse{cpu(1), LaneKind::compute}));
  ASSERT_TRUE(program.is_exchange(0));
  EXPECT_FALSE(program.is_exchange(1));
  std::vector<std::byte> arena(program.memory()[0].arena + program.memory()[0].slots);
  const std::vector<std::byte*> arenas = {arena.data()};
  program.bind(arenas, {});
  const Program::Exchange even = program.exchange(0, 4);
  EXPECT_FALSE(even.sends);
  EXPECT_EQ(even.peer, 0);
  EXPECT_EQ(even.channel, 1U);
  EXPECT_EQ(even.bytes, 40U);
  EXPECT_EQ(program.exchange(0, 5).memory - even.memory, 64);
  EXPECT_EQ(program.exchange(0, 6).memory, even.memory);
  EXPECT_EQ(program.exchanged(0).path(), "copy");
  // A rank where nothing lies has an empty program.
  options.rank = 2;
  EXPECT_EQ(Program(graph, options).operator_count(), 0U);
}

}  // namespace
}  // namespace purine
