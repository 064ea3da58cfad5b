// The dispatcher's lanes without workers: a launcher issues what is ready to a device's queues, or starts
// what is done elsewhere, and is told when it is done.
#include <algorithm>

#include "purine/core/error.h"
#include "purine/runtime/dispatcher_core.h"
#include "purine/runtime/yielding_thread.h"

namespace purine {

void Dispatcher::Core::launch(Launcher& launcher) {
  // What is started elsewhere takes its time there; a device's queue should never run dry.
  if (launcher.lanes[0]->lane.queue == nullptr) yield_to_workers();
  const auto issue_all = [&] {
    int issued = 0;
    for (LaneState* lane : launcher.lanes) issued += issue_ready(*lane);
    return issued > 0;
  };
  const auto visible = [&] {
    return std::any_of(launcher.lanes.begin(), launcher.lanes.end(), [](const LaneState* lane) {
      return lane->in_flight.load() < lane->lane.depth && !lane->ready.empty();
    });
  };
  while (launcher.idle.wait(issue_all, visible)) {
  }
}

int Dispatcher::Core::issue_ready() {
  PURINE_CHECK(!options_.threads);
  int issued = 0;
  for (const auto& lane : lanes_) {
    issued += lane->lane.workers == 0 ? issue_ready(*lane) : begin_ready(*lane);
  }
  return issued;
}

int Dispatcher::Core::issue_ready(LaneState& lane) {
  int issued = 0;
  while (lane.in_flight.load() < lane.lane.depth && !quit_.load()) {
    const Firing firing = take(lane, lane.shuffle ? &*lane.shuffle : nullptr);
    if (!firing.valid()) break;
    if (lane.lane.queue != nullptr) {
      issue(lane, firing);
    } else {
      start(lane, firing);
    }
    ++issued;
  }
  return issued;
}

// A poisoned operator is not issued, but waits for the same events and is completed by its queue, in order:
// its tokens also say that all before it on the queue is done.
void Dispatcher::Core::issue(LaneState& lane, Firing firing) {
  Queue& queue = *lane.lane.queue;
  const std::int64_t iteration = iteration_of(firing);
  bool poisoned = is_poisoned(firing);
  poisoned |= !attempt(firing, [&] {
    for (const MarkedGraph::EventWait& wait : graph_.event_waits(firing.position)) {
      if (iteration < wait.tokens) continue;
      queue.wait(*event_of(wait.from, counters_.earlier(firing.phase, wait.tokens)));
    }
  });
  const std::int64_t begin = tracing_ ? clock_.now() : 0;
  if (!poisoned) {
    const std::uint32_t op = graph_.operator_at(firing.position);
    poisoned = !attempt(firing, [&] { executor_.issue(op, iteration, queue); });
  }
  if (Event* const event = event_of(firing.position, firing.phase)) {
    poisoned |= !attempt(firing, [&] { queue.record(*event); });
  }
  counters_.arm(firing);
  pass_tokens(firing, poisoned, [](EdgeTiming timing) { return timing != EdgeTiming::done; });
  // Only now can the operator be done: an iteration that is finished passes no more tokens.
  const std::uint64_t tag = pack(firing) | (poisoned ? poison_bit : 0);
  take_off(lane, firing, begin);
  if (!attempt(firing, [&] { queue.notify(*this, tag); })) completed(tag, nullptr);
}

// What was started elsewhere passes all its tokens when it is done; what is poisoned isn't started.
void Dispatcher::Core::start(LaneState& lane, Firing firing) {
  const bool poisoned = is_poisoned(firing);
  const std::int64_t iteration = iteration_of(firing);
  counters_.arm(firing);
  take_off(lane, firing, tracing_ ? clock_.now() : 0);
  if (poisoned) {
    completed(pack(firing) | poison_bit, nullptr);
    return;
  }
  const double urgency = graph_.start(firing.position) + static_cast<double>(iteration) * graph_.period();
  try {
    executor_.start(graph_.operator_at(firing.position), iteration, urgency, *this, pack(firing));
  } catch (...) {
    completed(pack(firing), std::current_exception());
  }
}

void Dispatcher::Core::take_off(LaneState& lane, Firing firing, std::int64_t begin) {
  lane.flight(firing).store(begin, std::memory_order_relaxed);
  lane.in_flight.fetch_add(1);
  outstanding_.fetch_add(1);
}

template <typename Passes>
void Dispatcher::Core::pass_tokens(Firing firing, bool poisoned, Passes passes) {
  for (const MarkedGraph::Edge& edge : graph_.edges(firing.position)) {
    if (!passes(edge.timing())) continue;
    const Firing to{edge.to(), counters_.later(firing.phase, edge.tokens())};
    if (counters_.pass(to, poisoned && edge.kind() == EdgeKind::value)) make_ready(to);
  }
}

void Dispatcher::Core::completed(std::uint64_t tag, std::exception_ptr error) {
  if ((tag & worker_bit) != 0) return part_completed(*workers_[tag & ~worker_bit], error);
  const Firing firing = unpack(tag);
  LaneState& lane = *lanes_[graph_.lane_at(firing.position)];
  const bool poisoned = (tag & poison_bit) != 0 || error != nullptr;
  if (error != nullptr) {
    if (QueueFailed::is(error)) {
      note_poison(iteration_of(firing));
    } else {
      fail(firing, error);
    }
  }
  const std::int64_t begin = lane.flight(firing).exchange(not_in_flight, std::memory_order_relaxed);
  if (tracing_) {
    options_.trace(
        {graph_.operator_at(firing.position), lane.index, iteration_of(firing), 0, -1, begin, clock_.now()});
  }
  pass_tokens(firing, poisoned, [](EdgeTiming timing) { return timing == EdgeTiming::done; });
  lane.in_flight.fetch_sub(1);
  lane.idle->notify();
  count_done(firing.phase, 1);
  outstanding_.fetch_sub(1);
}

}  // namespace purine
