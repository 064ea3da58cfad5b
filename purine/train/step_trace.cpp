#include "purine/train/step_trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "purine/io/atomic_file.h"
#include "purine/io/file.h"
#include "purine/session/gather_texts.h"
#include "purine/trace/chrome_trace.h"

namespace purine::train {
namespace {

// Events of the second program are marked by this bit until the file is written.
constexpr std::uint32_t second_mark = 0x80000000U;

// A track for each worker, and two for each device that has queues: one for kernels, one for copies. The last
// one is of what is sent, and becomes several in the file.
std::vector<std::string> track_names(const Runtime& runtime) {
  std::vector<std::string> names;
  for (int i = 0; i < runtime.workers(); ++i) names.push_back(fmt::format("worker {}", i));
  for (const Location& device : runtime.devices()) {
    if (device.kind == DeviceKind::cpu) continue;
    names.push_back(fmt::format("{} kernels", device.text()));
    names.push_back(fmt::format("{} copies", device.text()));
  }
  names.emplace_back("sends");
  return names;
}

// Sends overlap one another: each goes to the first track that is free, and tracks are added as they are
// needed. Events are sorted by their begin.
void spread_sends(trace::Trace& trace, int sends_track) {
  trace.tracks.pop_back();
  std::vector<std::int64_t> free_from;  // by added track
  for (trace::OperatorEvent& event : trace.events) {
    if (event.track != sends_track) continue;
    const auto free = std::find_if(free_from.begin(), free_from.end(),
                                   [&](std::int64_t time) { return time <= event.begin; });
    event.track += static_cast<int>(free - free_from.begin());
    if (free == free_from.end()) {
      trace.tracks.push_back(fmt::format("sends {}", free_from.size()));
      free_from.push_back(event.end);
    } else {
      *free = event.end;
    }
  }
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
    : rank_(runtime.rank()),
      sends_track_(static_cast<int>(track_names(runtime).size()) - 1),
      end_(end),
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
    // A receive begins when its memory is offered, long before anything is on its way: the sender knows.
    const bool is_network = event.program->lanes()[event.lane].kind == LaneKind::network;
    if (is_network && !event.program->exchange(event.op, event.iteration).sends) return;
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
  if (lane.kind == LaneKind::network) return sends_track_;
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
  trace.rank = rank_;
  trace.sort();
  spread_sends(trace, sends_track_);
  return trace.dropped + trace::write_chrome_trace(path, trace, {.max_bytes = max_bytes_});
}

// The trace of another rank than 0 as a text: how many events found no room, and the file; or an empty line,
// and what went wrong.
std::string StepTrace::text() const {
  try {
    const std::filesystem::path temporary =
        std::filesystem::temp_directory_path() / fmt::format("purine-trace-{}-{}.json", ::getpid(), rank_);
    const std::uint64_t left_out = write(temporary);
    std::string text = fmt::format("{}\n{}", left_out, io::read_file(temporary));
    std::filesystem::remove(temporary);
    return text;
  } catch (const std::exception& error) {
    return fmt::format("\n{}", error.what());
  }
}

StepTrace::Written StepTrace::write_all(Runtime& runtime, const std::filesystem::path& path) const {
  const std::vector<std::string> texts = gather_texts(runtime, rank_ == 0 ? std::string() : text());
  Written written;
  if (rank_ != 0) return written;
  try {
    written.left_out = write(path);
    for (std::size_t rank = 1; rank < texts.size(); ++rank) {
      const std::size_t line = texts[rank].find('\n');
      const std::string_view rest = std::string_view(texts[rank]).substr(line + 1);
      if (line == 0) throw Error(fmt::format("rank {}", rank), rest);
      written.left_out += std::stoull(texts[rank]);
      std::filesystem::path other = path;
      other.replace_filename(
          fmt::format("{}.rank{}{}", path.stem().string(), rank, path.extension().string()));
      io::write_file(other, rest);
    }
  } catch (const Error& error) {
    written.error = error.what();
  }
  return written;
}

}  // namespace purine::train
