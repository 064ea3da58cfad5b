#include "purine/sim/simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/ops/copy.h"
#include "tests/support/error_text.h"
#include "tests/support/mix_operator.h"

namespace purine::sim {
namespace {

using test::mix;
using test::Mix;

// A core whose memory takes a byte a nanosecond: a Mix of m microseconds takes just these.
Cluster two_hosts(const std::string& card, const std::string& gpus = "") {
  return parse_cluster(
      "[cpu.core]\ncores = 1\nf32_gflops = 1\nmemory_gb_per_s = 1\nmemory_gib = 1\n"
      "[gpu.small]\nf32_gflops = 1\nmemory_gb_per_s = 1\nmemory_gib = 1\nin_gb_per_s = 1\nout_gb_per_s = 1\n"
      "[card.eth]\n" +
          card + "\n[[host]]\ncount = 2\ncpu = \"core\"\ncard = \"eth\"\n" + gpus,
      "two");
}

Location cpu(std::int32_t rank) {
  return {rank, DeviceKind::cpu, 0};
}

Tensor mix_at(Graph& graph, Location location, const std::vector<Tensor>& inputs, Mix::Options options) {
  const auto placement = graph.at(location);
  return mix(graph, inputs, std::move(options)).output();
}

TEST(SimulationTest, AChainTakesTheSumOfItsOperators) {
  Graph graph;
  Tensor tensor = mix_at(graph, cpu(0), {}, {.salt = 1, .depends_on_iteration = true, .microseconds = 100});
  for (int i = 0; i < 4; ++i) tensor = mix_at(graph, cpu(0), {tensor}, {.salt = i, .microseconds = 200});
  graph.watch(tensor);
  const SimulationResult result = simulate(graph, two_hosts("gbit_per_s = 1"), {.warm_up = 1, .steps = 4});
  // And the host reads 8 bytes.
  EXPECT_NEAR(result.step_seconds, 900.008e-6, 1e-12);
  EXPECT_EQ(result.operators, 6U);
  EXPECT_EQ(result.executions, 6U * 6U);
  ASSERT_EQ(result.devices.size(), 1U);
  EXPECT_EQ(result.devices[0].use.computing, 4 * 900'008);
  EXPECT_EQ(result.devices[0].use.time, 4 * 900'008);
}

// Rank 0 makes a tensor, sends it to rank 1 and works on it for a while; the message takes 16 ms.
struct Exchange {
  explicit Exchange(int microseconds_meanwhile) {
    constexpr std::int64_t elements = 2'000'000 / 8;
    const Tensor made = mix_at(graph, cpu(0), {}, {.outputs = {elements}, .depends_on_iteration = true});
    const Tensor there = ops::copy(made, cpu(1));
    graph.watch(mix_at(graph, cpu(0), {made}, {.salt = 1, .microseconds = microseconds_meanwhile}));
    graph.watch(mix_at(graph, cpu(1), {there}, {.salt = 2}));
  }
  Graph graph;
};

TEST(SimulationTest, TransfersAreHiddenAsFarAsThereIsWork) {
  const auto run = [](int microseconds) {
    Exchange exchange(microseconds);
    return simulate(exchange.graph, two_hosts("gbit_per_s = 1"), {.warm_up = 2, .steps = 10});
  };
  const SimulationResult long_work = run(40'000);
  EXPECT_NEAR(long_work.step_seconds, 0.040, 0.0001);
  const SimulationResult short_work = run(5'000);
  EXPECT_NEAR(short_work.step_seconds, 0.016, 0.001);
  const auto outgoing = [](const SimulationResult& result) {
    for (const LinkUse& link : result.links) {
      if (link.name == "0 network out") return link.use;
    }
    return Overlap{};
  };
  EXPECT_EQ(outgoing(long_work).bytes, 20'000'000);
  EXPECT_EQ(outgoing(long_work).exposed(), 0);
  EXPECT_NEAR(static_cast<double>(outgoing(short_work).exposed()), 10 * 11e6, 10e6);
  EXPECT_EQ(long_work.messages, 1);
  EXPECT_EQ(long_work.bytes_sent, 2'000'000);
}

TEST(SimulationTest, TellsHowFarItHasCome) {
  Exchange exchange(10);
  std::vector<std::string> told;
  SimulationOptions options{.warm_up = 1, .steps = 1};
  options.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
    told.push_back(std::string(what) + " " + std::to_string(done) + " of " + std::to_string(total));
  };
  simulate(exchange.graph, two_hosts("gbit_per_s = 1"), options);
  // Three iterations at each of two hosts: one more follows those that count.
  EXPECT_EQ(told, (std::vector<std::string>{"freezing 1 of 2", "freezing 2 of 2", "simulating 1 of 6",
                                            "simulating 2 of 6", "simulating 3 of 6", "simulating 4 of 6",
                                            "simulating 5 of 6", "simulating 6 of 6"}));
}

TEST(SimulationTest, WithABarrierIterationsDoNotOverlap) {
  Exchange exchange(10'000);
  const Cluster cluster = two_hosts("gbit_per_s = 1");
  EXPECT_NEAR(simulate(exchange.graph, cluster, {}).step_seconds, 0.016, 0.001);
  // Rank 0 sends what it makes first, and goes on meanwhile; rank 1 ends after the message.
  EXPECT_NEAR(simulate(exchange.graph, cluster, {.barrier = true}).step_seconds, 0.016, 0.001);
  Graph chain;
  const Tensor made = mix_at(chain, cpu(0), {}, {.depends_on_iteration = true, .microseconds = 3'000});
  chain.watch(mix_at(chain, cpu(1), {ops::copy(made, cpu(1))}, {.microseconds = 3'000}));
  EXPECT_NEAR(simulate(chain, cluster, {}).step_seconds, 0.003, 0.0003);
  EXPECT_NEAR(simulate(chain, cluster, {.barrier = true}).step_seconds, 0.0065, 0.0006);
}

TEST(SimulationTest, CopiesOfADeviceLieUnderItsOperators) {
  Graph graph;
  const Location device{0, DeviceKind::sim, 0};
  // 1 MB in, 4 ms of work, 1 MB out: a link takes 1 ms each way.
  const Tensor data = mix_at(graph, cpu(0), {}, {.outputs = {125'000}, .brings_samples = true});
  const Tensor made =
      mix_at(graph, device, {ops::copy(data, device)}, {.outputs = {125'000}, .microseconds = 4'000});
  graph.watch(mix_at(graph, cpu(0), {ops::copy(made, cpu(0))}, {}));
  const Cluster cluster = two_hosts("gbit_per_s = 1", "gpus = [\"small\"]\n");
  const SimulationResult result = simulate(graph, cluster, {.warm_up = 3, .steps = 5});
  EXPECT_NEAR(result.step_seconds, 0.005, 0.0015);
  std::vector<std::string> links;
  for (const LinkUse& link : result.links) links.push_back(link.name);
  EXPECT_EQ(links, std::vector<std::string>({"0/sim:0 in", "0/sim:0 out"}));
  ASSERT_EQ(result.devices.size(), 2U);
  EXPECT_EQ(result.devices[1].location, device);
  EXPECT_GE(result.devices[1].peak_bytes, 2'000'000U);
}

TEST(SimulationTest, ADeviceThatHasTooLittleMemoryIsAnError) {
  Graph graph;
  graph.watch(mix_at(graph, cpu(0), {}, {.outputs = {std::int64_t{3} << 26U}}));
  EXPECT_EQ(test::error_text([&] { simulate(graph, two_hosts("gbit_per_s = 1")); }),
            "[memory] 0/cpu:0 needs 1.50 GiB, and has 1.00; hint: use a smaller batch or model, more "
            "devices, or a scheme "
            "that divides the variables");
}

TEST(SimulationTest, ALocationThatTheClusterDoesNotHaveIsAnError) {
  Graph graph;
  graph.watch(mix_at(graph, {0, DeviceKind::sim, 3}, {}, {}));
  EXPECT_EQ(test::error_text([&] { simulate(graph, two_hosts("gbit_per_s = 1")); }),
            "[cluster] has no device 0/sim:3; hint: two has 2 hosts");
}

TEST(SimulationTest, EqualArgumentsGiveEqualResults) {
  const auto run = [] {
    Graph graph;
    test::build_random_graph(graph, 11,
                             {.operators = 80, .max_microseconds = 50, .locations = {cpu(0), cpu(1)}});
    return simulate(graph, two_hosts("gbit_per_s = 0.01\nlatency_us = 20"), {.trace = true});
  };
  const SimulationResult first = run();
  const SimulationResult second = run();
  EXPECT_EQ(first.finished_at, second.finished_at);
  EXPECT_EQ(first.traces, second.traces);
  ASSERT_EQ(first.traces.size(), 2U);
  EXPECT_GT(first.traces[0].events.size() + first.traces[1].events.size(), 80U);
  EXPECT_GT(first.messages, 0);
}

TEST(SimulationTest, MoreOperatorsThanAreToBeTracedAreNot) {
  const auto traces = [](std::size_t most) {
    Graph graph;
    graph.watch(mix_at(graph, cpu(0), {}, {.depends_on_iteration = true, .microseconds = 100}));
    return simulate(graph, two_hosts("gbit_per_s = 1"), {.steps = 4, .trace = true, .most_traced = most})
        .traces.size();
  };
  // The operator and what the host reads, in four steps.
  EXPECT_EQ(traces(8), 1U);
  EXPECT_EQ(traces(7), 0U);
}

// Random graphs over ranks and devices come to their end, whatever their transfers take.
TEST(SimulationTest, RandomGraphsOverRanksEnd) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph;
    test::build_random_graph(
        graph, seed,
        {.max_microseconds = 30,
         .locations = {
             cpu(0), cpu(1), {0, DeviceKind::sim, 0}, {0, DeviceKind::sim, 1}, {1, DeviceKind::sim, 0}}});
    const Cluster cluster =
        two_hosts(seed % 2 == 0 ? "gbit_per_s = 0.001" : "gbit_per_s = 100\nmessage_us = 3",
                  "gpus = [\"2 x small\"]\n");
    const SimulationResult result = simulate(graph, cluster, {.warm_up = 1, .steps = 3});
    EXPECT_EQ(result.finished_at.size(), 5U);
    EXPECT_GT(result.step_seconds, 0);
  }
}

TEST(SimulationTest, MeasuredCostsCountAndOthersOfTheirTypeFollowTheMostAlike) {
  Graph graph;
  Tensor tensor =
      mix_at(graph, cpu(0), {}, {.outputs = {7}, .depends_on_iteration = true, .microseconds = 100});
  tensor = mix_at(graph, cpu(0), {tensor}, {.outputs = {8}, .microseconds = 50});
  graph.watch(tensor);
  CostTable costs;
  costs.set("mix", "-> i64[7]", {.seconds = 300e-6, .cost = {0, 100e3}});
  costs.set("mix", "-> i64[9]", {.seconds = 10, .cost = {0, 1e9}});  // less alike
  const Cluster cluster = two_hosts("gbit_per_s = 1");
  const SimulationResult result = simulate(graph, cluster, {.costs = &costs});
  EXPECT_EQ(result.measured, 1U);
  EXPECT_EQ(result.computing, 3U);
  // 300 us measured, 3 times the 50 us of the other one, and 3 times the 64 ns that reading takes the memory.
  EXPECT_NEAR(result.step_seconds, 450.192e-6, 1e-9);
}

TEST(SimulationTest, WorkersShareAnOperatorsParts) {
  Graph graph;
  graph.watch(mix_at(graph, cpu(0), {}, {.outputs = {7}, .depends_on_iteration = true}));
  CostTable costs;
  costs.set("mix", "-> i64[7]", {.seconds = 800e-6, .parts = 4});
  const Cluster cluster = parse_cluster(
      "[cpu.two]\ncores = 2\nall_busy_speed = 0.8\nf32_gflops = 1\nmemory_gb_per_s = 1000\nmemory_gib = 1\n"
      "[card.eth]\ngbit_per_s = 1\n[[host]]\ncpu = \"two\"\ncard = \"eth\"\n",
      "two cores");
  EXPECT_NEAR(
      simulate(graph, cluster, {.warm_up = 1, .steps = 10, .costs = &costs, .barrier = true}).step_seconds,
      500e-6, 2e-6);
  EXPECT_NEAR(
      simulate(graph, cluster, {.warm_up = 1, .steps = 10, .costs = &costs, .workers = 1, .barrier = true})
          .step_seconds,
      800e-6, 2e-6);
}

}  // namespace
}  // namespace purine::sim
