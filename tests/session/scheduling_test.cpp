#include "purine/session/scheduling.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/models/models.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"
#include "tests/support/mix_operator.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::Mix;
using test::mix;

// By the estimates of purine/program/estimate.h.
constexpr double start = 1e-6;
constexpr double bytes_per_second = 8e9;
// Of one execution of a mix that does nothing but cost: 1 ms, and 10 us that each worker takes which joins.
constexpr int costly = 8000;
constexpr double work = 1e3 * costly / bytes_per_second;
constexpr std::size_t kept_bytes = 80'000;
constexpr double kept = kept_bytes / bytes_per_second;

/// Costs what its contract says, and notes which parts are run.
class NotingKernel final : public Kernel {
 public:
  struct Run {
    int part;
    bool scratch_kept;
    bool operator==(const Run&) const = default;
  };
  struct Notes {
    std::mutex mutex;
    std::vector<Run> runs;
  };

  NotingKernel(int parts, Notes* notes) : parts_(parts), notes_(notes) {}
  int parts() const override { return parts_; }
  std::size_t scratch_bytes() const override { return 64; }
  std::size_t kept_bytes() const override { return purine::kept_bytes; }
  void run(const KernelCall& call) override {
    if (call.part == 0) *call.output<std::int64_t>(0) = 1;
    if (notes_ == nullptr) return;
    const std::lock_guard lock(notes_->mutex);
    notes_->runs.push_back({call.part, call.scratch_kept});
  }

 private:
  int parts_;
  Notes* notes_;
};

void register_noting(Runtime& runtime, NotingKernel::Notes* notes = nullptr) {
  runtime.cpu_kernels().set("mix", [notes](const BindContext& context) {
    return std::make_unique<NotingKernel>(context.as<Mix>().options().parts, notes);
  });
}

/// `wide` chains of `length` operators that cost 1 ms each and have so many parts; their ends are watched.
std::unique_ptr<Graph> chains(int wide, int length, int parts) {
  auto graph = std::make_unique<Graph>();
  for (int chain = 0; chain < wide; ++chain) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < length; ++i) {
      inputs = {
          mix(*graph, inputs, {.salt = 100 * chain + i, .microseconds = costly, .parts = parts}).output()};
    }
    graph->watch(inputs.front());
  }
  return graph;
}

SchedulingChoice choice_of(Graph& graph, int workers, Scheduling scheduling = Scheduling::automatic) {
  Runtime runtime({.workers = workers});
  register_noting(runtime);
  return Session(runtime, graph, {.window = 1, .scheduling = scheduling}).scheduling();
}

std::map<int, double> by_parts(const SchedulingChoice& choice) {
  std::map<int, double> seconds;
  for (const SchedulingChoice::Candidate& candidate : choice.candidates) {
    seconds[candidate.parts] = candidate.step_seconds;
  }
  return seconds;
}

// Eight chains keep two workers busy without anything being divided, and each part that is has a price.
TEST(SchedulingTest, WideIndependentBranchesRunSideBySide) {
  const SchedulingChoice choice = choice_of(*chains(8, 2, 8), 2);
  EXPECT_EQ(choice.parts, 1);
  const std::map<int, double> seconds = by_parts(choice);
  ASSERT_EQ(seconds.size(), 4U);
  const double reads = 8 * start;  // of the watched values, which are small
  EXPECT_NEAR(seconds.at(1), 16 * (start + work + kept) / 2, reads);
  EXPECT_NEAR(seconds.at(8), 16 * (4 * start + work / 2 + kept), reads);
}

// In a chain nothing is beside anything: eight parts on four workers are two one after the other.
TEST(SchedulingTest, OneLargeOperatorAfterTheOtherIsDivided) {
  const SchedulingChoice choice = choice_of(*chains(1, 3, 8), 4);
  EXPECT_EQ(choice.parts, 8);
  const std::map<int, double> seconds = by_parts(choice);
  ASSERT_EQ(seconds.size(), 4U);
  const double read = 2 * start;
  EXPECT_NEAR(seconds.at(1), 3 * (start + work + kept), read);
  EXPECT_NEAR(seconds.at(2), 3 * (start + work / 2 + kept), read);
  EXPECT_NEAR(seconds.at(4), 3 * (start + work / 4 + kept), read);
  EXPECT_NEAR(seconds.at(8), 3 * (2 * start + work / 4 + kept), read);
}

// Of five parts on two workers one has three; in two parts of two and three of them it is the same.
TEST(SchedulingTest, PartsThatDoNotComeOutEvenAreAsLongAsTheLongest) {
  const std::map<int, double> seconds = by_parts(choice_of(*chains(1, 4, 5), 2));
  ASSERT_EQ(seconds.size(), 4U);
  EXPECT_NEAR(seconds.at(2), 4 * (start + 0.6 * work + kept), 2 * start);
  EXPECT_NEAR(seconds.at(5), 4 * (3 * start + 0.6 * work + kept), 2 * start);
}

TEST(SchedulingTest, WhatIsAskedForIsTaken) {
  // Two parts are 0.2% faster than four and 0.6% faster than eight.
  EXPECT_EQ(choice_of(*chains(8, 2, 8), 2, Scheduling::divided).parts, 4);
  EXPECT_EQ(choice_of(*chains(1, 3, 8), 4, Scheduling::side_by_side).parts, 1);
}

TEST(SchedulingTest, WhereThereIsNothingToChooseNothingIsPredicted) {
  const SchedulingChoice alone = choice_of(*chains(2, 2, 8), 1);
  EXPECT_EQ(alone.parts, 8);
  EXPECT_TRUE(alone.candidates.empty());
  const SchedulingChoice small = choice_of(*chains(2, 2, 1), 2);
  EXPECT_EQ(small.parts, 1);
  EXPECT_TRUE(small.candidates.empty());
}

TEST(SchedulingTest, APartRunsPartsOfTheKernelOneAfterTheOther) {
  const std::unique_ptr<Graph> graph = chains(1, 1, 5);
  const auto runs = [&](Scheduling scheduling) {
    NotingKernel::Notes notes;
    Runtime runtime({.workers = 1});
    register_noting(runtime, &notes);
    Session session(runtime, *graph, {.scheduling = scheduling});
    session.run_steps(1);
    return notes.runs;
  };
  using Runs = std::vector<NotingKernel::Run>;
  const Runs all = {{0, false}, {1, true}, {2, true}, {3, true}, {4, true}};
  EXPECT_EQ(runs(Scheduling::side_by_side), all);
  EXPECT_EQ(runs(Scheduling::divided), all);  // one worker keeps its scratch memory from part to part

  Runtime runtime({.workers = 1});
  register_noting(runtime);
  FreezeOptions freeze;
  freeze.kernels = runtime.kernels();
  freeze.host_read = [](Tensor) { return make_kernel([](const KernelCall&) {}); };
  Program program(*graph, freeze);
  ASSERT_EQ(program.type(0), "mix");
  EXPECT_EQ(program.parts(0), 5);
  program.divide(2);
  EXPECT_EQ(program.parts(0), 2);
  EXPECT_EQ(program.kernel_parts(0, 0).begin, 0);
  EXPECT_EQ(program.kernel_parts(0, 0).end, 2);
  EXPECT_EQ(program.kernel_parts(0, 1).begin, 2);
  EXPECT_EQ(program.kernel_parts(0, 1).end, 5);
}

using Bytes = std::vector<std::byte>;

/// The variables after some steps.
std::map<std::string, Bytes> trained(int workers, Scheduling scheduling) {
  Graph graph;
  const data::Batch batch =
      data::synthetic(graph, {.batch = 32, .image = {3, 32, 32}, .classes = 10, .seed = 3});
  const Tensor loss =
      ops::softmax_cross_entropy(models::build("small_convnet", batch.image, 10).logits, batch.label);
  optim::momentum(loss, {.learning_rate = 0.05, .momentum = 0.9});
  Runtime runtime({.workers = workers});
  Session session(runtime, graph, {.scheduling = scheduling});
  session.run_steps(3);
  std::map<std::string, Bytes> variables;
  for (const auto& [path, entry] : session.variables().entries()) {
    variables[path] = Bytes(entry.bytes().begin(), entry.bytes().end());
  }
  return variables;
}

TEST(SchedulingTest, TheBitsAreTheSameWhicheverIsTaken) {
  const Watchdog watchdog;
  const std::map<std::string, Bytes> expected = trained(1, Scheduling::divided);
  EXPECT_FALSE(expected.empty());
  for (const int workers : {1, 2, 3, 8}) {
    for (const Scheduling scheduling :
         {Scheduling::automatic, Scheduling::side_by_side, Scheduling::divided}) {
      EXPECT_TRUE(trained(workers, scheduling) == expected) << workers << " workers";
    }
  }
}

}  // namespace
}  // namespace purine
