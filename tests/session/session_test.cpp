#include "purine/session/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "purine/session/iteration_error.h"
#include "tests/session/reference.h"
#include "tests/support/error_text.h"
#include "tests/support/mix_operator.h"

namespace purine {
namespace {

using test::Mix;
using test::mix;
using test::read;
using test::Reference;
using test::Values;

class SessionTest : public testing::TestWithParam<int> {};

TEST_P(SessionTest, RandomGraphsGiveWhatOneOperatorAfterAnotherGives) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph;
    test::build_random_graph(graph, seed,
                             {.operators = 40,
                              .variables = 5,
                              .sources = 2,
                              .max_microseconds = seed % 3 == 0 ? 60 : 0,
                              .multiple_parts = seed % 2 == 0});
    Reference reference(graph);
    Session session(runtime, graph,
                    {.window = 1 + static_cast<int>(seed % 4), .poison_freed = seed % 5 == 0});
    std::int64_t steps = 0;
    for (const Step& step : session.run({.steps = 12})) {
      EXPECT_EQ(step.index, steps);
      const double expected = static_cast<double>(reference.step(step.index));
      ASSERT_EQ(step.value(graph.watched()[0]), expected) << "iteration " << step.index;
      ++steps;
    }
    EXPECT_EQ(steps, 12);
    for (const Variable variable : graph.variables()) {
      EXPECT_EQ(read(session, variable), reference.variable(variable)) << variable.path();
    }
  }
}

TEST_P(SessionTest, RandomGraphsOverSeveralDevicesGiveTheSame) {
  const std::vector<Location> devices = parse_devices("cpu:0-1,emu:0-2");
  Runtime runtime({.workers = GetParam(), .devices = devices, .emulated = {.memory = std::size_t{1} << 22U}});
  test::register_mix(runtime.cpu_kernels());
  for (std::uint32_t seed = 100; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph graph;
    test::build_random_graph(graph, seed,
                             {.operators = 30,
                              .variables = 5,
                              .max_microseconds = seed % 3 == 0 ? 40 : 0,
                              .multiple_parts = seed % 2 == 0,
                              .locations = devices});
    verify(graph);
    Reference reference(graph);
    Session session(runtime, graph,
                    {.window = 1 + static_cast<int>(seed % 4), .poison_freed = seed % 5 == 0});
    for (int run = 0; run < 2; ++run) {
      for (const Step& step : session.run({.steps = 6})) {
        const double expected = static_cast<double>(reference.step(step.index));
        ASSERT_EQ(step.value(graph.watched()[0]), expected) << "iteration " << step.index;
      }
      for (const Variable variable : graph.variables()) {
        EXPECT_EQ(read(session, variable), reference.variable(variable)) << variable.path();
      }
    }
  }
}

TEST_P(SessionTest, GoesOnWhereItStopped) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  test::build_random_graph(graph, 7, {.operators = 30});
  Reference reference(graph);
  for (int i = 0; i < 9; ++i) reference.step(i);
  Session session(runtime, graph);
  session.run_steps(2);
  session.run_steps(3);
  EXPECT_EQ(session.iteration(), 5);
  Session other(runtime, graph, {.variables = session.shared_variables()});
  other.set_iteration(5);
  other.run_steps(4);
  for (const Variable variable : graph.variables())
    EXPECT_EQ(read(other, variable), reference.variable(variable));
}

TEST_P(SessionTest, ALoopThatIsStoppedSeesEveryStepThatHasBegun) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  test::build_random_graph(graph, 5, {.operators = 20, .variables = 3});
  Reference reference(graph);
  Session session(runtime, graph);
  std::int64_t steps = 0;
  for (int run = 0; run < 3; ++run) {
    std::int64_t stopped_at = -1;
    for (const Step& step : session.run({.steps = 1000})) {
      ASSERT_EQ(step.index, steps++);
      ASSERT_EQ(step.value(graph.watched()[0]), static_cast<double>(reference.step(step.index)));
      if (step.index % 100 == 7 && stopped_at < 0) {
        stopped_at = step.index;
        session.stop();
      }
    }
    EXPECT_EQ(session.iteration(), steps) << "no step has run that the loop has not seen";
    EXPECT_LT(steps, stopped_at + 20);
    for (const Variable variable : graph.variables()) {
      EXPECT_EQ(read(session, variable), reference.variable(variable)) << variable.path();
    }
  }
}

TEST_P(SessionTest, DrainingWithinTheLoopEndsIt) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  test::build_random_graph(graph, 5, {.operators = 20, .variables = 3});
  Session session(runtime, graph);
  std::int64_t last = -1;
  for (const Step& step : session.run({.steps = 1000})) {
    last = step.index;
    if (step.index == 7) session.drain();
  }
  EXPECT_EQ(last, 7);
  EXPECT_LT(session.iteration(), 20);
  Reference reference(graph);
  for (std::int64_t t = 0; t < session.iteration(); ++t) reference.step(t);
  for (const Variable variable : graph.variables()) {
    EXPECT_EQ(read(session, variable), reference.variable(variable)) << variable.path();
  }
}

TEST_P(SessionTest, AnOperatorThatFailsEndsTheRunAndNoVariableTakesWhatDependsOnIt) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const auto initial = std::make_shared<Mix>(Mix::Options{.outputs = {10}});
  const Variable spoiled = graph.variable("spoiled", {{10}, DType::i64}, initial);
  const Variable sound = graph.variable("sound", {{10}, DType::i64}, initial);
  const std::vector<Sharing> in_place = {{0, 0, Sharing::Kind::overwrite}};
  Tensor failing;
  {
    const auto scope = graph.scope("deep/inside");
    failing = mix(graph, {spoiled}, {.salt = 1, .throws_at = 5}).output();
  }
  graph.set_next(spoiled,
                 mix(graph, {spoiled, failing}, {.salt = 2, .outputs = {10}, .sharing = in_place}).output());
  graph.set_next(sound, mix(graph, {sound}, {.salt = 3, .outputs = {10}, .sharing = in_place}).output());
  graph.watch(mix(graph, {failing}, {.salt = 4}).output());
  Graph good;  // the same without the failure
  const Variable expected = good.variable("spoiled", {{10}, DType::i64}, initial);
  const Tensor fine = mix(good, {expected}, {.salt = 1}).output();
  good.set_next(expected,
                mix(good, {expected, fine}, {.salt = 2, .outputs = {10}, .sharing = in_place}).output());
  good.watch(fine);
  Reference reference(good);
  for (int i = 0; i < 5; ++i) reference.step(i);

  Session session(runtime, graph);
  std::int64_t steps = 0;
  std::string text;
  try {
    for (const Step& step : session.run({.steps = 100})) {
      EXPECT_EQ(step.index, steps);
      ++steps;
    }
  } catch (const IterationError& error) {
    text = error.what();
    EXPECT_EQ(error.iteration(), 5);
    EXPECT_STREQ(error.cause().what(), "[mix] deep/inside/mix on 0/cpu:0: was told to fail");
  }
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(text, "[mix] deep/inside/mix on 0/cpu:0: was told to fail (iteration 5)");
  EXPECT_EQ(read(session, spoiled), reference.variable(expected));
  EXPECT_THROW(session.run_steps(1), Error);
}

TEST_P(SessionTest, FeedsInputsAheadInOrder) {
  Runtime runtime({.workers = GetParam()});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor input = graph.input("number", {{}, DType::i64});
  graph.watch(input);
  Session session(runtime, graph);
  session.feed(input, [](std::int64_t iteration, std::span<std::byte> value) {
    const std::int64_t number = iteration * iteration;
    std::memcpy(value.data(), &number, sizeof(number));
  });
  for (const Step& step : session.run({.steps = 50})) {
    EXPECT_EQ(step.value(input), static_cast<double>(step.index * step.index));
  }
}

TEST(SessionOverlapTest, AnOperatorOfTheNextIterationStartsBeforeTheLastOfThisOneEnds) {
  Runtime runtime({.workers = 2});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  // A slow tail that nothing of the next iteration waits for.
  const Tensor head = mix(graph, {}, {.salt = 1, .depends_on_iteration = true, .microseconds = 200}).output();
  const Tensor tail = mix(graph, {head}, {.salt = 2, .microseconds = 2000}).output();
  graph.watch(tail);
  std::mutex mutex;
  std::vector<RanEvent> events;
  Session session(runtime, graph, {.trace = [&](const RanEvent& event) {
                    const std::lock_guard lock(mutex);
                    events.push_back(event);
                  }});
  session.run_steps(10);
  int overlaps = 0;
  for (const RanEvent& first : events) {
    for (const RanEvent& second : events) {
      overlaps += second.iteration == first.iteration + 1 && second.begin < first.end;
    }
  }
  EXPECT_GT(overlaps, 0);
}

TEST(SessionOverlapTest, IndependentOperatorsRunAtTheSameTime) {
  Runtime runtime({.workers = 2});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor head = mix(graph, {}, {.salt = 1}).output();
  const Tensor left = mix(graph, {head}, {.salt = 2, .microseconds = 3000}).output();
  const Tensor right = mix(graph, {head}, {.salt = 3, .microseconds = 3000}).output();
  graph.watch(mix(graph, {left, right}, {.salt = 4}).output());
  std::mutex mutex;
  std::vector<RanEvent> events;
  Session session(runtime, graph, {.window = 1, .trace = [&](const RanEvent& event) {
                                     const std::lock_guard lock(mutex);
                                     events.push_back(event);
                                   }});
  session.run_steps(20);
  int together = 0;
  for (const RanEvent& first : events) {
    for (const RanEvent& second : events) {
      const bool branches =
          session.program().path(first.op) == "mix_2" && session.program().path(second.op) == "mix_3";
      together += branches && first.iteration == second.iteration && first.worker != second.worker &&
                  first.begin < second.end && second.begin < first.end;
    }
  }
  EXPECT_GT(together, 0);  // how often depends on what else keeps the cores busy
}

INSTANTIATE_TEST_SUITE_P(Workers, SessionTest, testing::Values(1, 2, 4, 16));

/// Brings the numbers of samples in: 10 an epoch, in batches.
class Numbers final : public Contract {
 public:
  explicit Numbers(std::int64_t batch) : batch_(batch) {}
  std::string_view type() const override { return "numbers"; }
  std::string attributes() const override { return "batch=" + std::to_string(batch_); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override {
    return {{{batch_}, DType::f32}};
  }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override {
    return {{{}, {0}, batch_, false}};
  }
  ContractPtr piece(const SplitRule&, const Piece& piece, std::span<const TensorInfo>) const override {
    return std::make_shared<Numbers>(piece.end - piece.begin);
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool brings_samples() const override { return true; }
  std::int64_t samples_per_epoch() const override { return 10; }

 private:
  std::int64_t batch_;
};

/// The sum of a vector.
class Total final : public Contract {
 public:
  std::string_view type() const override { return "total"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override { return {{{}, DType::f32}}; }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override {
    return {{{0}, {SplitRule::partial}, inputs[0].shape[0], false}};
  }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
};

TEST(SessionEpochTest, EndsEachEpochWithAShortBatch) {
  Runtime runtime({.workers = 2});
  runtime.cpu_kernels().add("numbers", [](const BindContext& context) {
    const std::int64_t batch = context.output(0).shape[0];
    return make_kernel([batch](const KernelCall& call) {
      for (std::int64_t i = 0; i < batch; ++i) {
        call.output<float>(0)[i] = static_cast<float>(call.iteration % 3 * 4 + i);
      }
    });
  });
  runtime.cpu_kernels().add("total", [](const BindContext& context) {
    const std::int64_t count = context.input(0).shape[0];
    return make_kernel([count](const KernelCall& call) {
      float total = 0;
      for (std::int64_t i = 0; i < count; ++i) total += call.input<float>(0)[i];
      call.output<float>(0)[0] = total;
    });
  });
  Graph graph;
  const Tensor numbers = graph.add(std::make_shared<Numbers>(4), {}).output();
  const Tensor total = graph.add(std::make_shared<Total>(), {numbers}).output();
  graph.watch(total);
  Session session(runtime, graph);
  EXPECT_EQ(session.steps_per_epoch(), 3);
  EXPECT_EQ(session.samples_per_epoch(), 10);
  std::vector<double> totals;
  std::vector<std::int64_t> samples;
  std::vector<std::int64_t> epochs;
  for (const Step& step : session.run({.epochs = 2})) {
    totals.push_back(step.value(total));
    samples.push_back(step.samples);
    epochs.push_back(step.epoch);
    EXPECT_EQ(step.last_of_epoch, step.index % 3 == 2);
  }
  EXPECT_EQ(totals, (std::vector<double>{6, 22, 17, 6, 22, 17}));
  EXPECT_EQ(samples, (std::vector<std::int64_t>{4, 4, 2, 4, 4, 2}));
  EXPECT_EQ(epochs, (std::vector<std::int64_t>{0, 0, 0, 1, 1, 1}));
  // From the middle of an epoch, a run of epochs goes to the end of the last one.
  session.set_iteration(4);
  std::int64_t steps = 0;
  for (const Step& step : session.run({.epochs = 1})) {
    EXPECT_EQ(step.epoch, 1);
    ++steps;
  }
  EXPECT_EQ(steps, 2);
}

TEST(SessionErrorTest, SaysWhatIsNotWatched) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const Tensor hidden = mix(graph, {}, {}).output();
  const Tensor shown = mix(graph, {hidden}, {}).output();
  graph.watch(shown);
  Session session(runtime, graph);
  for (const Step& step : session.run({.steps = 1})) {
    try {
      step.value(hidden);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "[step] mix: is not watched, so the host has no value of it; hint: call "
                   "graph.watch(tensor) before the session is made");
    }
  }
}

TEST(SessionErrorTest, NamesTheTensorOfAnotherGraph) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph written;
  Graph graph;
  const Tensor elsewhere = mix(written, {}, {}).output();
  const Tensor shown = mix(graph, {}, {}).output();
  written.watch(elsewhere);
  graph.watch(shown);
  Session session(runtime, graph);
  for (const Step& step : session.run({.steps = 1})) {
    EXPECT_FALSE(step.has(elsewhere));
    EXPECT_EQ(
        test::error_text([&] { step.value(elsewhere); }),
        "[step] mix: belongs to another graph than the session runs; hint: of a graph that was divided, "
        "parallel::Partitioned::at(tensor) gives the tensor that runs");
  }
}

TEST(SessionErrorTest, RefusesRunsThatMeanNothing) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  graph.watch(mix(graph, {}, {}).output());
  Session session(runtime, graph);
  EXPECT_THROW(session.run({}), Error);
  EXPECT_THROW(session.run({.epochs = 1}), Error);
  EXPECT_THROW(session.run({.epochs = 1, .steps = 1}), Error);
  EXPECT_THROW(session.set_iteration(-1), Error);
}

TEST(SessionErrorTest, NeedsAKernelForEachOperator) {
  Runtime runtime({.workers = 1});
  Graph graph;
  graph.watch(mix(graph, {}, {}).output());
  try {
    const Session session(runtime, graph);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[mix] mix: has no kernel on this device");
  }
}

// Where convolutions are measured, kernels are bound by several threads.
TEST(SessionErrorTest, OfManyWithoutAKernelNamesTheFirst) {
  for (int i = 0; i < 20; ++i) {
    Runtime runtime({.workers = 1,
                     .convolutions = RuntimeOptions::Convolutions::measured,
                     .convolution_choices = std::filesystem::path()});
    Graph graph;
    Tensor x = mix(graph, {}, {}).output();
    for (int salt = 1; salt < 30; ++salt) x = mix(graph, {x}, {.salt = salt}).output();
    graph.watch(x);
    try {
      const Session session(runtime, graph);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "[mix] mix: has no kernel on this device");
    }
  }
}

}  // namespace
}  // namespace purine
