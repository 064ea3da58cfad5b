#include "purine/train/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "purine/trace/chrome_trace.h"

namespace purine::train {
namespace {

// Events of the second program are marked by this bit until the file is written.
constexpr std::uint32_t second_mark = 0x80000000U;

// A track for each worker, and two for each device that has queues: one for kernels, one for copies.
std::vector<std::string> track_names(const Runtime& runtime) {
  std::vector<std::string> names;
  for (int i = 0; i < runtime.workers(); ++i) names.push_back(fmt::format("worker {}", i));
  for (const Location& device : runtime.devices()) {
    if (device.kind == DeviceKind::cpu) continue;
    names.push_back(fmt::format("{} kernels", device.text()));
    names.push_back(fmt::format("{} copies", device.text()));
  }
  return names;
}

// Events that a track has room for: as many as a file of that size can show, and no more than the steps of a
// large network make.
std::size_t capacity(std::int64_t steps, std::uint64_t max_bytes) {
  constexpr std::uint64_t bytes_per_event = 150;  // of JSON, at least
  constexpr std::uint64_t events_per_step = 20'000;
  return std::min(max_bytes / bytes_per_event, static_cast<std::uint64_t>(steps) * events_per_step);
}

void add_labels(trace::Trace& trace, const Program& program) {
  for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
    trace.operators.push_back(
        {program.path(op), std::string(program.type(op)), program.location(op).text(), program.shapes(op)});
  }
}

}  // namespace

StepTrace::StepTrace(std::int64_t first, std::int64_t end, std::int64_t megabytes, const Runtime& runtime)
    : end_(end),
      max_bytes_(static_cast<std::uint64_t>(megabytes) * 1'000'000),
      recorder_(
          track_names(runtime),
          {.capacity = capacity(end - first, max_bytes_), .first_iteration = first, .end_iteration = end}) {
  int track = runtime.workers();
  for (const Location& device : runtime.devices()) {
    if (device.kind == DeviceKind::cpu) continue;
    device_tracks_[device] = track;
    track += 2;
  }
}

std::function<void(const RanEvent&)> StepTrace::hook() {
  return [this](const RanEvent& event) {
    // Transfers between ranks overlap one another: no track could show them.
    if (event.program->lanes()[event.lane].kind == LaneKind::network) return;
    if (recorder_.wants(event.iteration)) record(event);
  };
}

void StepTrace::record(const RanEvent& event) {
  const Program* first = first_program_.load(std::memory_order_relaxed);
  std::uint32_t op = event.op;
  if (first != event.program && !(first == nullptr && claim(event.program))) {
    second_program_.store(event.program, std::memory_order_relaxed);
    op |= second_mark;
  }
  recorder_.record(track_of(event), op, event.part, event.iteration, event.begin, event.end);
}

// True if the first program is this one.
bool StepTrace::claim(const Program* program) {
  const Program* first = nullptr;
  return first_program_.compare_exchange_strong(first, program) || first == program;
}

int StepTrace::track_of(const RanEvent& event) const {
  if (event.worker >= 0) return event.worker;
  const LaneUse& lane = event.program->lanes()[event.lane];
  return device_tracks_.at(lane.location) + (lane.kind == LaneKind::compute ? 0 : 1);
}

std::uint64_t StepTrace::write(const std::filesystem::path& path) const {
  trace::Trace trace = recorder_.trace();
  std::uint32_t offset = 0;
  if (const Program* first = first_program_.load()) {
    add_labels(trace, *first);
    offset = first->operator_count();
  }
  if (const Program* second = second_program_.load()) add_labels(trace, *second);
  for (trace::OperatorEvent& event : trace.events) {
    if ((event.op & second_mark) != 0) event.op = (event.op & ~second_mark) + offset;
  }
  trace.sort();
  return trace.dropped + trace::write_chrome_trace(path, trace, {.max_bytes = max_bytes_});
}

}  // namespace purine::train
