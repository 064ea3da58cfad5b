#include "purine/session/memory_limit.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <regex>
#include <string>

#include "purine/ops/copy.h"
#include "purine/session/session.h"
#include "tests/support/error_text.h"
#include "tests/support/mix_operator.h"

namespace purine {
namespace {

using test::error_text;
using test::Mix;
using test::mix;

/// A variable of 8000 bytes, updated in place, and a chain behind it of 3200, 1600, 800 and 8 bytes.
void build_chain(Graph& graph) {
  const auto initial = std::make_shared<Mix>(Mix::Options{.outputs = {1000}});
  const Variable state = graph.variable("state", {{1000}, DType::i64}, initial);
  const Tensor first = mix(graph, {state}, {.salt = 1, .outputs = {400}}).output();
  const Tensor second = mix(graph, {first}, {.salt = 2, .outputs = {200}}).output();
  const Tensor third = mix(graph, {second}, {.salt = 3, .outputs = {100}}).output();
  const Tensor last = mix(graph, {third}, {.salt = 4}).output();
  graph.watch(last);
  graph.set_next(state, mix(graph, {state, last},
                            {.salt = 5, .outputs = {1000}, .sharing = {{0, 0, Sharing::Kind::overwrite}}})
                            .output());
}

TEST(PeakBytesTest, AreThoseOfTensorsThatLiveAtTheSameTime) {
  Runtime runtime({.workers = 2});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  build_chain(graph);
  const Session session(runtime, graph);
  // The first and the second of the chain together are the most that lives at a time; the third (832 bytes, a
  // multiple of 64) and the last lie where the first has been, and the variable's next value lies in its own.
  EXPECT_EQ(session.peak_bytes(), 8000U + 3200U + 1600U);
  EXPECT_EQ(session.peak_bytes(Location{}), 8000U + 3200U + 1600U);
}

TEST(PeakBytesTest, CountWhatEveryWorkerNeeds) {
  for (const int workers : {1, 2, 5}) {
    Runtime runtime({.workers = workers});
    runtime.cpu_kernels().add("mix", [](const BindContext&) {
      return make_kernel([](const KernelCall& call) { *call.output<std::int64_t>(0) = 1; }, 1, 4096);
    });
    Graph graph;
    graph.watch(mix(graph, {}, {}).output());
    const Session session(runtime, graph);
    EXPECT_EQ(session.peak_bytes(), 64U + 4096U * static_cast<unsigned>(workers));
    EXPECT_EQ(session.peak_bytes(Location{}), 64U);
  }
}

TEST(PeakBytesTest, CountDataOnItsWayInTwice) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor data = mix(graph, {}, {.outputs = {512}, .brings_samples = true}).output();
  graph.watch(mix(graph, {data}, {}).output());
  const Session session(runtime, graph);
  EXPECT_EQ(session.peak_bytes(), 2 * 4096U + 64U);
}

TEST(PeakBytesTest, AreCountedAtEachLocation) {
  const Location near = parse_devices("cpu:0")[0];
  const Location far = parse_devices("emu:0")[0];
  Runtime runtime({.workers = 1, .devices = {near, far}});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor made = mix(graph, {}, {.outputs = {512}}).output();
  const Tensor moved = ops::copy(made, far);
  Tensor answer;
  {
    const auto place = graph.at(far);
    answer = mix(graph, {moved}, {.outputs = {128}}).output();
  }
  graph.watch(mix(graph, {ops::copy(answer, near)}, {}).output());
  const Session session(runtime, graph);
  EXPECT_EQ(session.peak_bytes(far), 4096U + 1024U);
  EXPECT_EQ(session.peak_bytes(), session.peak_bytes(near) + session.peak_bytes(far));
}

TEST(MemoryLimitTest, RefusesAGraphThatCannotFitBeforeItTakesAnyMemory) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const std::int64_t elements = std::int64_t{1} << 47;  // 2^50 bytes: a pebibyte
  const auto initial = std::make_shared<Mix>(Mix::Options{.outputs = {elements}});
  const Variable large = graph.variable("large", {{elements}, DType::i64}, initial);
  graph.watch(mix(graph, {large}, {}).output());
  const auto variables = std::make_shared<Variables>();
  const std::string text =
      error_text([&] { const Session session(runtime, graph, {.variables = variables}); });
  EXPECT_TRUE(std::regex_match(
      text, std::regex(R"(\[memory\] the program needs 1048576\.0 GiB, [0-9]+\.[0-9] GiB are available; )"
                       R"(hint: use a smaller batch or model)")))
      << text;
  EXPECT_TRUE(variables->entries().empty());
}

TEST(MemoryLimitTest, IsWhatTheSystemHasLeft) {
  EXPECT_GT(available_memory(), 0U);
  EXPECT_LT(available_memory(), std::numeric_limits<std::size_t>::max());
  EXPECT_NO_THROW(check_memory(0));
  EXPECT_NO_THROW(check_memory(1));
  EXPECT_THROW(check_memory(std::numeric_limits<std::size_t>::max()), Error);
}

}  // namespace
}  // namespace purine
