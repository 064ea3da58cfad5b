// What runs at the same time as what.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purine/data/source.h"
#include "purine/models/googlenet.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"
#include "tests/support/mix_operator.h"

namespace purine {
namespace {

using test::mix;

/// What a session's trace has told, from all workers.
class Events {
 public:
  std::function<void(const RanEvent&)> recorder() {
    return [this](const RanEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }
  std::vector<RanEvent> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<RanEvent> events_;
};

TEST(SessionOverlapTest, DataOfTheNextIterationIsBroughtInWhileThisOneComputes) {
  constexpr std::int64_t steps = 8;
  constexpr auto slow = std::chrono::milliseconds(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t begun = 0;  // batches that the source has begun with
  Runtime runtime({.workers = 2});
  test::register_mix(runtime.cpu_kernels());
  runtime.cpu_kernels().set("mix", [&](const BindContext& context) {
    const bool is_source = context.inputs.empty();
    return make_kernel([&, is_source](const KernelCall& call) {
      if (is_source) {
        const std::lock_guard lock(mutex);
        begun = call.iteration + 1;
        changed.notify_all();
      } else if (call.iteration + 1 < steps) {
        // Computing lasts until the next batch is under way. Without a source that runs ahead it never is.
        std::unique_lock lock(mutex);
        const bool ahead =
            changed.wait_for(lock, std::chrono::seconds(30), [&] { return begun > call.iteration + 1; });
        if (!ahead) throw Error("mix", "the next batch does not begin");
      }
      std::this_thread::sleep_for(slow);
      *call.output<std::int64_t>(0) = call.iteration;
    });
  });
  Graph graph;
  const Tensor data = mix(graph, {}, {.salt = 1, .brings_samples = true}).output();
  graph.watch(mix(graph, {data}, {.salt = 2}).output());
  Events events;
  Session session(runtime, graph, {.trace = events.recorder()});
  session.run_steps(steps);
  std::vector<std::int64_t> source_begin(steps);
  std::vector<std::int64_t> last_end(steps);
  for (const RanEvent& event : events.take()) {
    const auto iteration = static_cast<std::size_t>(event.iteration);
    if (event.program->brings_data(event.op)) source_begin[iteration] = event.begin;
    last_end[iteration] = std::max(last_end[iteration], event.end);
  }
  for (std::size_t t = 0; t + 1 < steps; ++t) {
    EXPECT_LT(source_begin[t + 1], last_end[t]) << "iteration " << t;
  }
}

/// The branch of GoogLeNet's first inception module that an operator belongs to, in either direction, from 1;
/// 0 where it is none's, or runs as one with operators of other branches.
int branch_of(const std::string& path) {
  static const std::vector<std::vector<std::string>> branches = {
      {"conv_1x1"}, {"reduce_3x3", "conv_3x3"}, {"reduce_5x5", "conv_5x5"}, {"pool", "projection"}};
  if (path.find(" + ") != std::string::npos) return 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (const std::string& layer : branches[i]) {
      if (path.find("googlenet/inception_3a/" + layer) != std::string::npos) return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

constexpr std::string_view of_weight = "/conv2d_weight_gradient";

/// True for the two gradients of one convolution.
bool are_gradients_of_one_convolution(const std::string& one, const std::string& other) {
  return one.ends_with(of_weight) &&
         other == one.substr(0, one.size() - of_weight.size()) + "/conv2d_input_gradient";
}

TEST(SessionOverlapTest, BranchesOfAnInceptionModuleAndGradientsOfAConvolutionRunAtTheSameTime) {
  Graph graph;
  const data::Batch batch =
      data::synthetic(graph, {.batch = 2, .image = {3, 64, 64}, .classes = 10, .seed = 1});
  const Tensor loss = ops::softmax_cross_entropy(models::googlenet(batch.image, 10).logits, batch.label);
  optim::momentum(loss, {.learning_rate = 0.01, .momentum = 0.9});
  graph.watch(loss);
  Runtime runtime({.workers = 2});
  Events events;
  Session session(runtime, graph, {.trace = events.recorder()});
  int branches = 0;
  int gradients = 0;
  std::int64_t steps = 0;
  // Until both were seen: how often they meet depends on what else keeps the cores busy.
  for ([[maybe_unused]] const Step& step : session.run({.steps = 200})) {
    ++steps;
    const std::vector<RanEvent> ran = events.take();
    for (const RanEvent& one : ran) {
      const std::string path = session.program().path(one.op);
      const int branch = branch_of(path);
      if (branch == 0 && !path.ends_with(of_weight)) continue;
      for (const RanEvent& other : ran) {
        const bool together = one.iteration == other.iteration && one.worker != other.worker &&
                              one.begin < other.end && other.begin < one.end;
        if (!together) continue;
        const std::string other_path = session.program().path(other.op);
        branches += branch > 0 && branch_of(other_path) > branch ? 1 : 0;
        gradients += are_gradients_of_one_convolution(path, other_path) ? 1 : 0;
      }
    }
    if (branches > 0 && gradients > 0) session.stop();
  }
  EXPECT_GT(branches, 0) << "in " << steps << " steps";
  EXPECT_GT(gradients, 0) << "in " << steps << " steps";
}

}  // namespace
}  // namespace purine
