#include "purine/parallel/schedule.h"

#include <algorithm>

#include "purine/core/error.h"

namespace purine::parallel {
namespace {

std::vector<Task> tasks_of_stage(int stages, int micro_batches, int stage) {
  const int in_flight = micro_batches_in_flight(stages, micro_batches, stage);
  std::vector<Task> tasks;
  for (int m = 0; m < in_flight; ++m) tasks.push_back({Phase::forward, stage, m});
  for (int m = 0; m < micro_batches; ++m) {
    tasks.push_back({Phase::backward, stage, m});
    if (m + in_flight < micro_batches) tasks.push_back({Phase::forward, stage, m + in_flight});
    tasks.push_back({Phase::weight_gradient, stage, m});
  }
  return tasks;
}

}  // namespace

int micro_batches_in_flight(int stages, int micro_batches, int stage) {
  return std::min(stages - stage, micro_batches);
}

std::vector<Task> one_forward_one_backward(int stages, int micro_batches) {
  PURINE_CHECK(stages > 0 && micro_batches > 0);
  std::vector<std::vector<Task>> tasks;
  for (int s = 0; s < stages; ++s) tasks.push_back(tasks_of_stage(stages, micro_batches, s));
  std::vector<std::size_t> next(tasks.size(), 0);
  // How many forwards, and backwards, a stage has done.
  std::vector<int> forwards(tasks.size(), 0);
  std::vector<int> backwards(tasks.size(), 0);
  const auto is_ready = [&](const Task& task) {
    const auto s = static_cast<std::size_t>(task.stage);
    if (task.phase == Phase::forward) return s == 0 || forwards[s - 1] > task.micro_batch;
    if (task.phase == Phase::backward) return s + 1 == tasks.size() || backwards[s + 1] > task.micro_batch;
    return true;
  };
  std::vector<Task> order;
  // In every round each stage does one forward or backward, and what weight gradients come before it.
  for (std::size_t done = 0; done < tasks.size();) {
    std::vector<Task> round;
    done = 0;
    for (std::size_t s = 0; s < tasks.size(); ++s) {
      while (next[s] < tasks[s].size()) {
        const Task& task = tasks[s][next[s]];
        if (!is_ready(task)) break;
        round.push_back(task);
        ++next[s];
        if (task.phase != Phase::weight_gradient) break;
      }
      if (next[s] == tasks[s].size()) ++done;
    }
    PURINE_CHECK(!round.empty());
    for (const Task& task : round) {
      if (task.phase == Phase::forward) ++forwards[static_cast<std::size_t>(task.stage)];
      if (task.phase == Phase::backward) ++backwards[static_cast<std::size_t>(task.stage)];
    }
    order.insert(order.end(), round.begin(), round.end());
  }
  return order;
}

}  // namespace purine::parallel
