#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/pipeline.h"
#include "purine/parallel/schedule.h"
#include "purine/session/session.h"
#include "tests/parallel/devices.h"

namespace purine::parallel {
namespace {

using test::stages;

constexpr std::int64_t layer_width = 16;

/// Layers of one width, `layer0x` and so on, and what is run between them.
template <typename Between>
Tensor build(Graph& graph, int layers, std::int64_t samples, Between&& between) {
  Tensor x = graph.input("x", {{samples, layer_width}, DType::f32});
  const Tensor target = graph.input("target", {{samples, layer_width}, DType::f32});
  for (int i = 0; i < layers; ++i)
    x = between(nn::linear(x, layer_width, {}, "layer" + std::to_string(i) + "x"));
  const Tensor loss = ops::mean_squared_error(x, target, "loss");
  optim::sgd(loss, {.learning_rate = 0.05});
  return loss;
}

Tensor relu(Tensor x) {
  return ops::relu(x);
}

void feed(Session& session, Graph& graph) {
  for (const Tensor input : graph.inputs()) {
    session.feed(input, [](std::int64_t iteration, std::span<std::byte> value) {
      std::vector<float> numbers(value.size() / sizeof(float));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<float>((static_cast<std::size_t>(iteration) * 5 + i * 7) % 19) / 9 - 1;
      }
      std::memcpy(value.data(), numbers.data(), value.size());
    });
  }
}

std::vector<double> losses(Runtime& runtime, Graph& graph, Tensor loss, SessionOptions options = {}) {
  Session session(runtime, graph, std::move(options));
  feed(session, graph);
  std::vector<double> losses;
  for (const Step& step : session.run({.steps = 4})) losses.push_back(step.value(loss));
  return losses;
}

Runtime four_devices() {
  return Runtime({.workers = 2, .devices = parse_devices("emu:0-3"), .emulated = {.memory = 8U << 20U}});
}

TEST(PipelineSessionTest, EveryStageRunsForwardAndBackwardInTurn) {
  constexpr int micro_batches = 8;
  // The forwards before the first backward are in no order, nor are the backwards after the last forward.
  const auto in_order = [](Task task) {
    const int in_flight = micro_batches_in_flight(4, micro_batches, task.stage);
    if (task.phase == Phase::forward && task.micro_batch < in_flight) task.micro_batch = 0;
    if (task.phase == Phase::backward)
      task.micro_batch = std::min(task.micro_batch, micro_batches - in_flight);
    return task;
  };
  Graph graph;
  build(graph, 12, 2 * micro_batches, relu);
  Partitioned parts = pipeline(graph, stages(4), {.micro_batches = micro_batches});
  struct Ran {
    std::int64_t iteration;
    std::int64_t end;
    Task task;
    bool operator<(const Ran& other) const {
      return std::tie(iteration, end) < std::tie(other.iteration, other.end);
    }
  };
  std::mutex mutex;
  std::map<int, std::vector<Ran>> by_stage;
  SessionOptions options;
  options.trace = [&](const RanEvent& event) {
    const std::string path = event.program->path(event.op);
    const auto dot = path.find('.');
    // What each micro-batch has at a stage: `@2.5/…`.
    if (!path.starts_with('@') || dot == std::string::npos || dot > path.find('/')) return;
    Task task;
    task.stage = std::stoi(path.substr(1));
    task.micro_batch = std::stoi(path.substr(dot + 1));
    // Activations and their gradients; the loss and gradients of weights come when there is time.
    if (!event.program->shapes(event.op).ends_with("-> f32[2, 16]")) return;
    if (path.find("/gradient/") != std::string::npos) task.phase = Phase::backward;
    task = in_order(task);
    const std::lock_guard lock(mutex);
    by_stage[task.stage].push_back({event.iteration, event.end, task});
  };
  {
    Runtime runtime = four_devices();
    Session session(runtime, parts.graph(), std::move(options));
    feed(session, parts.graph());
    session.run_steps(3);
    session.drain();
  }
  const std::vector<Task> schedule = one_forward_one_backward(4, micro_batches);
  for (int stage = 0; stage < 4; ++stage) {
    std::vector<Task> expected;
    for (int step = 0; step < 3; ++step) {
      for (Task task : schedule) {
        task = in_order(task);
        if (task.stage != stage || task.phase == Phase::weight_gradient) continue;
        if (expected.empty() || !(expected.back() == task)) expected.push_back(task);
      }
    }
    std::vector<Ran>& ran = by_stage[stage];
    std::stable_sort(ran.begin(), ran.end());
    std::vector<Task> order;
    for (const Ran& event : ran) {
      if (order.empty() || !(order.back() == event.task)) order.push_back(event.task);
    }
    const auto text = [](const std::vector<Task>& tasks) {
      std::string all;
      for (const Task& task : tasks) {
        all += (task.phase == Phase::forward ? " F" : " B") + std::to_string(task.micro_batch);
      }
      return all;
    };
    EXPECT_EQ(text(order), text(expected)) << "stage " << stage;
  }
}

/// x, by a kernel that waits until the neighbouring stages have begun with theirs.
class Meet final : public Contract {
 public:
  std::string_view type() const override { return "test_meet"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override { return {inputs[0]}; }
  std::vector<Tensor> gradient(const GradientContext& context) const override {
    return {context.output_gradient(0)};
  }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override {
    return {{{0}, {0}, inputs[0].shape[0], false}};
  }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
};

/// Where stages tell that they have begun with a micro-batch.
class MeetingPlace {
 public:
  MeetingPlace(int stages, int micro_batches) : stages_(stages), micro_batches_(micro_batches) {}

  /// Stage s works on micro-batch m while stage s + 1 works on m - 1.
  void meet(std::int64_t iteration, int stage, int micro_batch) {
    std::unique_lock lock(mutex_);
    begun_.insert({iteration, stage, micro_batch});
    changed_.notify_all();
    const auto wait_for = [&](int other_stage, int other) {
      if (other_stage < 0 || other_stage >= stages_ || other < 0 || other >= micro_batches_) return;
      const bool met = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
        return begun_.contains({iteration, other_stage, other});
      });
      if (!met) throw Error("test_meet", "stage " + std::to_string(other_stage) + " never came");
    };
    wait_for(stage + 1, micro_batch - 1);
    wait_for(stage - 1, micro_batch + 1);
  }

 private:
  const int stages_;
  const int micro_batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::tuple<std::int64_t, int, int>> begun_;
};

TEST(PipelineSessionTest, StagesWorkAtTheSameTime) {
  constexpr int micro_batches = 6;
  MeetingPlace place(4, micro_batches);
  Runtime runtime = four_devices();
  runtime.cpu_kernels().add("test_meet", [&](const BindContext& context) {
    const std::string& path = context.path;
    const int stage = std::stoi(path.substr(1));
    const int micro_batch = std::stoi(path.substr(path.find('.') + 1));
    const std::size_t bytes = context.output(0).bytes();
    return make_kernel([&place, stage, micro_batch, bytes](const KernelCall& call) {
      place.meet(call.iteration, stage, micro_batch);
      std::memcpy(call.outputs[0], call.inputs[0], bytes);
    });
  });
  // More operators than a queue has in flight follow in each stage, so that nothing that is sent from it
  // waits in a queue of the next one meanwhile.
  Graph graph;
  int layers = 0;
  const Tensor loss = build(graph, 12, 2 * micro_batches, [&](Tensor x) {
    if (layers++ % 3 != 0) return ops::relu(x);
    return x.graph().add(std::make_shared<Meet>(), {x}).output();
  });
  PipelineOptions options{.micro_batches = micro_batches};
  options.cost = [](Operator op) { return op.type() == "test_meet" ? 1.0 : 0.0; };
  Partitioned parts = pipeline(graph, stages(4), options);
  const std::vector<double> values = losses(runtime, parts.graph(), parts.at(loss), {.window = 1});
  EXPECT_LT(values.back(), values.front());
}

TEST(PipelineSessionTest, MemoryGrowsWithStagesAndNotWithMicroBatches) {
  Runtime runtime = four_devices();
  const auto peak = [&](int stage_count, int micro_batches) {
    Graph graph;
    // Activations of 8 KiB: eight a stage and micro-batch, and a weight of 1 KiB a layer.
    build(graph, 4 * stage_count, 128 * micro_batches, relu);
    Partitioned parts = pipeline(graph, stages(stage_count), {.micro_batches = micro_batches});
    Session session(runtime, parts.graph());
    std::vector<std::size_t> bytes;
    for (const Location location : parts.mesh().locations()) bytes.push_back(session.peak_bytes(location));
    return bytes;
  };
  // Stage s of S holds S - s micro-batches' activations, and those of one whose weights' gradients are to
  // come.
  constexpr std::size_t activations = 4 * 128 * layer_width * sizeof(float);
  constexpr std::size_t received = activations / 4;
  for (const int stage_count : {2, 3, 4}) {
    const std::vector<std::size_t> many = peak(stage_count, 16);
    const std::vector<std::size_t> few = peak(stage_count, 8);
    const std::vector<std::size_t> more = peak(stage_count, 32);
    for (std::size_t s = 0; s < many.size(); ++s) {
      // Holes in the arena differ by a tensor or two; the activations of 24 micro-batches would be 24 times
      // 40 KiB.
      EXPECT_NEAR(static_cast<double>(few[s]), static_cast<double>(many[s]), 2.0 * received);
      EXPECT_NEAR(static_cast<double>(more[s]), static_cast<double>(many[s]), 2.0 * received);
      const std::size_t held = many.size() - s;
      EXPECT_GE(many[s], held * activations);
      EXPECT_LE(many[s], (held + 4) * (activations + received)) << "stage " << s << " of " << stage_count;
    }
  }
  EXPECT_GT(peak(4, 16).front(), peak(2, 16).front());
}

TEST(PipelineSessionTest, FreedMemoryIsNeverRead) {
  Runtime runtime = four_devices();
  Graph one;
  const Tensor loss = build(one, 8, 10, relu);
  const std::vector<double> expected = losses(runtime, one, loss);
  Graph graph;
  const Tensor same = build(graph, 8, 10, relu);
  for (const int count : {2, 3, 4}) {
    Partitioned parts = pipeline(graph, stages(count), {.micro_batches = 4});
    const std::vector<double> got = losses(runtime, parts.graph(), parts.at(same), {.poison_freed = true});
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
  }
}

}  // namespace
}  // namespace purine::parallel
