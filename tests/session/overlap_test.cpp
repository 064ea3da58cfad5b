// What runs at the same time as what.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace purine
