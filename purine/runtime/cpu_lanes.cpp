// The dispatcher's CPU lanes: workers take ready operators, run them and release their successors.
#include <utility>

#include "purine/runtime/dispatcher_core.h"

namespace purine {

void Dispatcher::Core::work(Worker& worker) {
  Firing firing;
  while (!quit_.load(std::memory_order_relaxed)) {
    if (!firing.valid()) firing = next(worker);
    if (firing.valid()) firing = run(worker, firing);
  }
}

// The firing to run next, waiting for it; none when the dispatcher ends.
Firing Dispatcher::Core::next(Worker& worker) {
  LaneState& lane = *worker.lane;
  Shuffle* shuffle = worker.shuffle ? &*worker.shuffle : nullptr;
  Firing firing = take(lane, shuffle);
  if (!firing.valid()) {
    count_done(worker);
    lane.idle->wait(
        [&] {
          firing = take(lane, shuffle);
          return firing.valid();
        },
        [&] { return !lane.ready.empty(); });
  }
  if (firing.valid() && !lane.ready.empty()) lane.idle->notify();
  return firing;
}

// Runs a firing (or a part of it), and returns a successor that this worker keeps for itself, or none.
Firing Dispatcher::Core::run(Worker& worker, Firing firing) {
  enter_iteration(worker, firing);
  bool poisoned = is_poisoned(firing);
  if (!poisoned) {
    if (MultiPart* const multi = multi_part(firing)) {
      const int part = take_part(*worker.lane, firing, *multi);
      const bool skipped = multi->failed.load(std::memory_order_relaxed);
      return end_part(worker, firing, *multi, skipped || execute(worker, firing, part));
    }
    poisoned = !execute(worker, firing, 0);
  }
  return complete(worker, firing, poisoned);
}

// Takes the firing's next part, and leaves the rest to others.
int Dispatcher::Core::take_part(LaneState& lane, Firing firing, MultiPart& multi) {
  const int part = multi.next++;
  if (part == 0) multi.unfinished.store(multi.parts, std::memory_order_relaxed);
  if (part + 1 < multi.parts) {
    lane.ready.insert(firing.phase, firing.position - lane.begin);
    lane.idle->notify();
  } else {
    multi.next = 0;
  }
  return part;
}

bool Dispatcher::Core::execute(Worker& worker, Firing firing, int part) {
  const std::uint32_t op = graph_.operator_at(firing.position);
  const std::int64_t iteration = iteration_of(firing);
  worker.current.store(pack(firing), std::memory_order_relaxed);
  bool succeeded = true;
  try {
    const std::int64_t begin = tracing_ ? clock_.now() : 0;
    executor_.run(op, iteration, part, worker.index);
    if (tracing_) {
      options_.trace({op, worker.lane->index, iteration, part, worker.index, begin, clock_.now()});
    }
  } catch (...) {
    fail(firing, std::current_exception());
    succeeded = false;
  }
  worker.current.store(resting, std::memory_order_relaxed);
  return succeeded;
}

// Completes the firing with its last part.
Firing Dispatcher::Core::end_part(Worker& worker, Firing firing, MultiPart& multi, bool succeeded) {
  if (!succeeded) multi.failed.store(true, std::memory_order_relaxed);
  if (multi.unfinished.fetch_sub(1, std::memory_order_acq_rel) > 1) return {};
  return complete(worker, firing, multi.failed.exchange(false, std::memory_order_relaxed));
}

Firing Dispatcher::Core::complete(Worker& worker, Firing firing, bool poisoned) {
  LaneState& lane = *worker.lane;
  counters_.arm(firing);
  Firing kept;
  bool inserted = false;
  for (const MarkedGraph::Edge& edge : graph_.edges(firing.position)) {
    const Firing to{edge.to(), counters_.later(firing.phase, edge.tokens())};
    if (!counters_.pass(to, poisoned && edge.kind() == EdgeKind::value)) continue;
    if (to.position - lane.begin >= lane.size) {
      make_ready(to);
      continue;
    }
    Firing other = to;
    if (!shuffled_ && (!kept.valid() || runs_before(to, kept))) std::swap(other, kept);
    if (!other.valid()) continue;
    lane.ready.insert(other.phase, other.position - lane.begin);
    inserted = true;
  }
  ++worker.done_count;
  if (kept.valid()) {
    const Firing head = first(lane);
    if (head.valid() && runs_before(head, kept)) {
      lane.ready.insert(kept.phase, kept.position - lane.begin);
      inserted = true;
      kept = {};
    }
  }
  if (inserted) lane.idle->notify();
  return kept;
}

// Counting is put off while a worker stays in one iteration: as long as it runs an operator of the iteration,
// that one can't be finished anyway.
void Dispatcher::Core::count_done(Worker& worker) {
  if (worker.done_count > 0) count_done(worker.done_phase, std::exchange(worker.done_count, 0U));
}

}  // namespace purine
