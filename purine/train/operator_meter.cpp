#include "purine/train/operator_meter.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purine::train {
namespace {

/// Parts of operators that one worker runs in a step: those of large networks over many devices.
constexpr std::size_t events_per_step = 20'000;

}  // namespace

OperatorMeter::OperatorMeter(std::int64_t first, std::int64_t end, const Runtime& runtime)
    : recorder_(std::vector<std::string>(static_cast<std::size_t>(runtime.workers())),
                {.capacity = static_cast<std::size_t>(end - first) * events_per_step,
                 .first_iteration = first,
                 .end_iteration = end}) {}

std::function<void(const RanEvent&)> OperatorMeter::hook() {
  return [this](const RanEvent& event) {
    if (event.worker < 0) return;
    const Program* measured = nullptr;
    // Of a session with two programs, the one that runs first is measured.
    if (!program_.compare_exchange_strong(measured, event.program) && measured != event.program) return;
    recorder_.record(event.worker, event.op, event.part, event.iteration, event.begin, event.end);
  };
}

program::CostTable OperatorMeter::costs(program::MeasuredMachine machine) const {
  program::CostTable table(std::move(machine));
  std::map<std::uint32_t, std::map<std::int64_t, std::int64_t>> times;  // by operator, by iteration
  for (const trace::OperatorEvent& event : recorder_.trace().events) {
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
