// The dispatcher's CPU lanes without threads: each worker begins what it would run, and goes on when it is
// told that that is done. What a worker takes, keeps and releases is decided by the same code as with
// threads.
#include <utility>

#include "purine/core/error.h"
#include "purine/runtime/dispatcher_core.h"

namespace purine {

int Dispatcher::Core::begin_ready(LaneState& lane) {
  int begun = 0;
  while (!lane.resting_workers.empty() && !quit_.load()) {
    Worker& worker = *lane.resting_workers.back();
    const Firing firing = take(lane, worker.shuffle ? &*worker.shuffle : nullptr);
    if (!firing.valid()) break;
    lane.resting_workers.pop_back();
    if (begin(worker, firing)) ++begun;
  }
  return begun;
}

// Begins a firing (or a part of it), or, where that ends at once, what this worker does after it. False if
// the worker rests, since nothing is ready.
bool Dispatcher::Core::begin(Worker& worker, Firing firing) {
  LaneState& lane = *worker.lane;
  Shuffle* const shuffle = worker.shuffle ? &*worker.shuffle : nullptr;
  for (;;) {
    if (!firing.valid()) firing = take(lane, shuffle);
    if (!firing.valid()) {
      count_done(worker);  // which may admit an iteration
      firing = take(lane, shuffle);
    }
    if (!firing.valid()) {
      lane.resting_workers.push_back(&worker);
      return false;
    }
    enter_iteration(worker, firing);
    if (is_poisoned(firing)) {
      firing = complete(worker, firing, true);
      continue;
    }
    MultiPart* const multi = multi_part(firing);
    worker.part = multi != nullptr ? take_part(lane, firing, *multi) : 0;
    bool succeeded = true;
    if (multi == nullptr || !multi->failed.load(std::memory_order_relaxed)) {
      worker.current.store(pack(firing), std::memory_order_relaxed);
      worker.begin = clock_.now();
      succeeded = attempt(firing, [&] {
        executor_.begin(graph_.operator_at(firing.position), iteration_of(firing), worker.part, worker.index,
                        *this, worker_bit | static_cast<std::uint64_t>(worker.index));
      });
      if (succeeded) return true;
      worker.current.store(resting, std::memory_order_relaxed);
    }
    firing = end(worker, firing, succeeded);
  }
}

// Ends a firing, or a part of it.
Firing Dispatcher::Core::end(Worker& worker, Firing firing, bool succeeded) {
  MultiPart* const multi = multi_part(firing);
  return multi != nullptr ? end_part(worker, firing, *multi, succeeded)
                          : complete(worker, firing, !succeeded);
}

void Dispatcher::Core::part_completed(Worker& worker, const std::exception_ptr& error) {
  const Firing firing = unpack(worker.current.exchange(resting, std::memory_order_relaxed));
  if (error != nullptr) fail(firing, error);
  if (tracing_) {
    options_.trace({graph_.operator_at(firing.position), worker.lane->index, iteration_of(firing),
                    worker.part, worker.index, worker.begin, clock_.now()});
  }
  begin(worker, end(worker, firing, error == nullptr));
}

}  // namespace purine
