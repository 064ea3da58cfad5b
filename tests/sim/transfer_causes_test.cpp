#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/ops/copy.h"
#include "purine/sim/simulation.h"
#include "purine/trace/why.h"
#include "tests/support/mix_operator.h"

namespace purine::sim {
namespace {

using test::mix;

Tensor mix_at(std::int32_t rank, const std::vector<Tensor>& inputs, test::Mix::Options options,
              Graph& graph) {
  const auto placement = graph.at({rank, DeviceKind::cpu, 0});
  return mix(graph, inputs, std::move(options)).output();
}

/// Rank 0 makes `messages` tensors of `bytes` at once, all of which rank 1 needs for what it sends back; a
/// core takes a millisecond each for both.
trace::Explanation explanation_of(int messages, std::int64_t bytes, const std::string& card) {
  Graph graph;
  const std::vector<std::int64_t> outputs(static_cast<std::size_t>(messages), bytes / 8);
  std::vector<Tensor> there;
  {
    const auto placement = graph.at({0, DeviceKind::cpu, 0});
    const Operator made =
        mix(graph, {}, {.outputs = outputs, .depends_on_iteration = true, .microseconds = 1'000});
    for (const Tensor& tensor : made.outputs()) there.push_back(ops::copy(tensor, {1, DeviceKind::cpu, 0}));
  }
  const Tensor sum = mix_at(1, there, {.salt = 1, .microseconds = 1'000}, graph);
  graph.watch(mix_at(0, {ops::copy(sum, {0, DeviceKind::cpu, 0})}, {.salt = 2}, graph));
  const Cluster cluster = parse_cluster(
      "[cpu.core]\ncores = 1\nf32_gflops = 1\nmemory_gb_per_s = 1\nmemory_gib = 1\n[card.eth]\n" + card +
          "\n[[host]]\ncount = 2\ncpu = \"core\"\ncard = \"eth\"\n",
      "two");
  const SimulationResult result = simulate(graph, cluster, {.trace = true, .barrier = true});
  const trace::Timeline timeline(result.traces);
  return trace::explain(timeline, trace::critical_path(timeline), {.network = network_speed(cluster)});
}

/// Expects that a part holds most of what is transferred, which holds most of a step, and that it is told so
/// in words; and that making it faster is what helps.
void expect_cause(const trace::Explanation& explanation, const std::string& part, const std::string& words,
                  const std::string& hint, const std::string& remedy) {
  ASSERT_FALSE(explanation.causes.empty());
  const trace::Cause& cause = explanation.causes.front();
  EXPECT_EQ(cause.what, "transfer");
  EXPECT_GT(cause.share, 0.6) << trace::why_text(explanation);
  const auto most = std::ranges::max_element(explanation.transfers, {}, &trace::PathShare::share);
  EXPECT_EQ(most->what, part) << trace::why_text(explanation);
  EXPECT_GT(most->share, 0.75 * cause.share) << trace::why_text(explanation);
  EXPECT_NE(cause.text.find(words), std::string::npos) << cause.text;
  EXPECT_NE(cause.hint.find(hint), std::string::npos) << cause.hint;
  for (const trace::WhatIf& what_if : explanation.what_ifs) {
    if (what_if.what.starts_with("devices") || what_if.what == "network infinitely fast") continue;
    const double gain = 1 - what_if.seconds / explanation.step_seconds;
    if (what_if.what == remedy) {
      EXPECT_NEAR(gain, most->share / 2, 0.1) << trace::why_text(explanation);
    } else {
      EXPECT_LT(gain, 0.1) << what_if.what;
    }
  }
}

TEST(TransferCausesTest, ASlowLink) {
  expect_cause(explanation_of(4, 1'000'000, "gbit_per_s = 1\nlatency_us = 20\nmessage_us = 5"), "rate",
               "% of it at the rate of the links, 1 Gbit/s; 4.0 MB a step over all", "a larger batch",
               "links of twice the rate");
}

TEST(TransferCausesTest, ALongWay) {
  expect_cause(explanation_of(4, 8'000, "gbit_per_s = 10\nlatency_us = 20000\nmessage_us = 5"), "latency",
               "% of it latency, 20.0 ms each way; ", "links of a higher rate don't",
               "links of half the latency");
}

TEST(TransferCausesTest, ManySmallMessages) {
  expect_cause(explanation_of(400, 2'000, "gbit_per_s = 10\nlatency_us = 20\nmessage_us = 30"), "messages",
               "% of it for messages, not bytes: 401 a step of 2.0 kB in the mean cost 30 us each; ",
               "fewer messages help: larger buckets (`parallel.bucket_kib`)", "messages at half the cost");
}

}  // namespace
}  // namespace purine::sim
