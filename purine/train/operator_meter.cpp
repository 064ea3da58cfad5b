#include "purine/train/operator_meter.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purine::train {
namespace {

/// Parts of operators that one worker runs in a step: those of large networks over many devices.
constexpr std::size_t metered_events_per_step = 20'000;
/// What is recorded of one worker, at 40 bytes an event: the first of many steps tell enough.
constexpr std::size_t most_events = std::size_t{1} << 19U;
/// Iterations that may be under way at the same time, of any session.
constexpr std::int64_t most_window = 8;

/// Iterations before this one are recorded whole, where some events found no room.
std::int64_t end_of_whole(const trace::Trace& trace, std::size_t workers) {
  std::vector<std::int64_t> last(workers, 0);
  for (const trace::OperatorEvent& event : trace.events) {
    std::int64_t& of_worker = last[static_cast<std::size_t>(event.track)];
    of_worker = std::max(of_worker, event.iteration);
  }
  // A worker that was full at an iteration has all those of the iterations that had ended by then.
  return *std::min_element(last.begin(), last.end()) - most_window + 1;
}

}  // namespace

OperatorMeter::OperatorMeter(std::int64_t first, std::int64_t end, const Runtime& runtime)
    : recorder_(
          std::vector<std::string>(static_cast<std::size_t>(runtime.workers())),
          {.capacity = std::min(static_cast<std::size_t>(end - first) * metered_events_per_step, most_events),
           .first_iteration = first,
           .end_iteration = end}) {}

std::function<void(const RanEvent&)> OperatorMeter::hook() {
  return [this](const RanEvent& event) {
    if (event.worker < 0 || !recorder_.wants(event.iteration)) return;
    // Of a session with two programs, the one that runs first is measured.
    const Program* measured = program_.load(std::memory_order_relaxed);
    if (measured == nullptr && program_.compare_exchange_strong(measured, event.program)) {
      measured = event.program;
    }
    if (measured != event.program) return;
    recorder_.record(event.worker, event.op, event.part, event.iteration, event.begin, event.end);
  };
}

program::CostTable OperatorMeter::costs(program::MeasuredMachine machine) const {
  program::CostTable table(std::move(machine));
  std::map<std::uint32_t, std::map<std::int64_t, std::int64_t>> times;  // by operator, by iteration
  const trace::Trace trace = recorder_.trace();
  const std::int64_t end = trace.dropped == 0
                               ? std::numeric_limits<std::int64_t>::max()
                               : end_of_whole(trace, static_cast<std::size_t>(recorder_.track_count()));
  for (const trace::OperatorEvent& event : trace.events) {
    if (event.iteration >= end) continue;
    times[event.op][event.iteration] += event.end - event.begin;
  }
  for (const auto& [op, by_iteration] : times) {
    std::vector<std::int64_t> sorted;
    for (const auto& [iteration, nanoseconds] : by_iteration) sorted.push_back(nanoseconds);
    std::sort(sorted.begin(), sorted.end());
    program::OperatorCost cost = program::describe_operator(*program_.load(), op);
    cost.seconds = 1e-9 * static_cast<double>(sorted[sorted.size() / 2]);
    table.add(std::move(cost));
  }
  return table;
}

}  // namespace purine::train
