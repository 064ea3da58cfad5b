#include "purine/train/step_trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "purine/backend/cpu/machine_probe.h"
#include "purine/io/atomic_file.h"
#include "purine/io/file.h"
#include "purine/session/gather_texts.h"
#include "purine/session/gather_values.h"
#include "purine/trace/chrome_trace.h"
#include "purine/trace/clock_alignment.h"
#include "purine/trace/operators_of.h"
#include "purine/trace/read_traces.h"

namespace purine::train {
namespace {

// Events of the second program are marked by this bit until the file is written.
constexpr std::uint32_t second_mark = 0x80000000U;

constexpr std::pair<LaneKind, std::string_view> queue_kinds[] = {{LaneKind::compute, "kernels"},
                                                                 {LaneKind::copy_in, "copies in"},
                                                                 {LaneKind::copy_out, "copies out"},
                                                                 {LaneKind::peer, "copies from peers"}};

// A track for each worker and each queue of a device, and over several ranks one of what is received. The
// last one is of what is sent, and becomes several in the file.
std::vector<std::string> track_names(const Runtime& runtime) {
  std::vector<std::string> names;
  for (int i = 0; i < runtime.workers(); ++i) names.push_back(fmt::format("worker {}", i));
  for (const Location& device : runtime.devices()) {
    if (device.kind == DeviceKind::cpu) continue;
    for (const auto& [kind, name] : queue_kinds) names.push_back(fmt::format("{} {}", device.text(), name));
  }
  names.emplace_back("receives");
  names.emplace_back("sends");
  return names;
}

// Tracks that nothing ran on say nothing: a device without peers, one process alone.
void leave_out_empty_queues(trace::Trace& trace, int workers) {
  std::vector<std::int32_t> number(trace.tracks.size(), -1);
  for (const trace::OperatorEvent& event : trace.events) number[static_cast<std::size_t>(event.track)] = 0;
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] < 0 && i >= static_cast<std::size_t>(workers)) continue;
    number[i] = static_cast<std::int32_t>(kept.size());
    kept.push_back(std::move(trace.tracks[i]));
  }
  trace.tracks = std::move(kept);
  for (trace::OperatorEvent& event : trace.events)
    event.track = number[static_cast<std::size_t>(event.track)];
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

// A program's operators, numbered on from those that are there.
void add_operators(trace::Trace& trace, const Program& program) {
  const auto offset = static_cast<std::uint32_t>(trace.operators.size());
  for (trace::OperatorLabel& label : trace::operators_of(program)) {
    for (trace::Dependency& dependency : label.after) dependency.op += offset;
    trace.operators.push_back(std::move(label));
  }
}

std::vector<std::pair<std::string, std::string>> about_machine(const Runtime& runtime) {
  std::vector<std::string> devices;
  for (const Location& device : runtime.devices()) devices.push_back(device.text());
  const auto memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  std::vector<char> host(256, '\0');
  ::gethostname(host.data(), host.size() - 1);
  return {{"host", host.data()},
          {"processor", cpu::processor_name()},
          {"cores", std::to_string(Runtime::available_cores())},
          {"memory", fmt::format("{:.1f} GiB", memory / (1 << 30))},
          {"devices", fmt::format("{}", fmt::join(devices, ", "))},
          {"workers", std::to_string(runtime.workers())},
          {"ranks", std::to_string(runtime.ranks())}};
}

// What all ranks' ends of their messages were, one a line of rank 0's.
struct MessageEnd {
  std::int32_t peer = 0;
  std::uint32_t channel = 0;
  std::int64_t iteration = 0;
  std::int64_t time = 0;
  std::int64_t sends = 0;
};

std::string message_ends(const trace::Trace& trace) {
  std::string text;
  for (const trace::OperatorEvent& event : trace.events) {
    const std::optional<trace::ExchangeLabel>& exchange = trace.operators[event.op].exchange;
    if (!exchange) continue;
    const MessageEnd end{exchange->peer, exchange->channel, event.iteration,
                         exchange->sends ? event.begin : event.end, exchange->sends};
    text.append(reinterpret_cast<const char*>(&end), sizeof(end));
  }
  return text;
}

// At rank 0: the moves for what all ranks have told of their messages.
std::vector<std::int64_t> moves_for(const std::vector<std::string>& texts) {
  using Name = std::tuple<int, int, std::uint32_t, std::int64_t>;  // sender, receiver, channel, iteration
  std::map<Name, std::int64_t> sent;
  const auto visit = [&](const auto& take) {
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      for (std::size_t at = 0; at < texts[rank].size(); at += sizeof(MessageEnd)) {
        MessageEnd end;
        std::memcpy(&end, texts[rank].data() + at, sizeof(end));
        take(static_cast<int>(rank), end);
      }
    }
  };
  visit([&](int rank, const MessageEnd& end) {
    if (end.sends != 0) sent[{rank, end.peer, end.channel, end.iteration}] = end.time;
  });
  std::vector<trace::ObservedMessage> messages;
  visit([&](int rank, const MessageEnd& end) {
    if (end.sends != 0) return;
    const auto found = sent.find({end.peer, rank, end.channel, end.iteration});
    if (found != sent.end()) messages.push_back({end.peer, rank, found->second, end.time});
  });
  return trace::moves_for_causality(static_cast<int>(texts.size()), messages);
}

// What to add to a time for rank 0's clock, by two comparisons, between and around which clocks run evenly.
std::int64_t offset_at(std::int64_t time, const std::vector<net::ClockOffset>& clocks) {
  const net::ClockOffset& first = clocks.front();
  const net::ClockOffset& last = clocks.back();
  if (last.at - first.at < 1'000'000'000) return last.offset;  // too near to tell speeds
  const double slope =
      static_cast<double>(last.offset - first.offset) / static_cast<double>(last.at - first.at);
  return last.offset + std::llround(slope * static_cast<double>(time - last.at));
}

void move_to_first_clock(trace::Trace& trace, const std::vector<net::ClockOffset>& clocks) {
  const auto move = [&](std::int64_t& time) { time += offset_at(time, clocks); };
  for (trace::OperatorEvent& event : trace.events) {
    move(event.begin);
    move(event.end);
  }
  trace.clock.offset = clocks.back().offset;
  for (const net::ClockOffset& clock : clocks) trace.clock.error = std::max(trace.clock.error, clock.error);
}

}  // namespace

StepTrace::StepTrace(std::int64_t first, std::int64_t end, std::int64_t megabytes, const Runtime& runtime,
                     std::vector<std::pair<std::string, std::string>> about)
    : rank_(runtime.rank()),
      workers_(runtime.workers()),
      sends_track_(static_cast<int>(track_names(runtime).size()) - 1),
      end_(end),
      max_bytes_(static_cast<std::uint64_t>(megabytes) * 1'000'000),
      recorder_(
          track_names(runtime),
          {.capacity = capacity(end - first, max_bytes_), .first_iteration = first, .end_iteration = end}),
      about_(about_machine(runtime)) {
  about_.insert(about_.end(), about.begin(), about.end());
  int track = workers_;
  for (const Location& device : runtime.devices()) {
    if (device.kind == DeviceKind::cpu) continue;
    for (const auto& [kind, name] : queue_kinds) queue_tracks_[{device, kind}] = track++;
  }
}

std::function<void(const RanEvent&)> StepTrace::hook() {
  return [this](const RanEvent& event) {
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
  if (lane.kind != LaneKind::network) return queue_tracks_.at({lane.location, lane.kind});
  return event.program->exchange(event.op, event.iteration).sends ? sends_track_ : sends_track_ - 1;
}

void StepTrace::compare_clocks(const Runtime& runtime) {
  if (runtime.endpoint() == nullptr) return;
  clocks_ = {net::measure_clock_offset(*runtime.endpoint(), SteadyClock())};
}

trace::Trace StepTrace::assemble() const {
  trace::Trace trace = recorder_.trace();
  std::uint32_t offset = 0;
  if (const Program* first = first_program_.load()) {
    add_operators(trace, *first);
    trace.memory = trace::memory_of(*first);
    offset = first->operator_count();
  }
  if (const Program* second = second_program_.load()) add_operators(trace, *second);
  for (trace::OperatorEvent& event : trace.events) {
    if ((event.op & second_mark) != 0) event.op = (event.op & ~second_mark) + offset;
  }
  trace.rank = rank_;
  trace.about = about_;
  if (rank_ == 0) trace.run = run_;
  trace.sort();
  spread_sends(trace, sends_track_);
  leave_out_empty_queues(trace, workers_);
  return trace;
}

std::uint64_t StepTrace::write(const std::filesystem::path& path, const trace::Trace& trace,
                               std::optional<std::int64_t> origin) const {
  return trace.dropped + trace::write_chrome_trace(path, trace, {.max_bytes = max_bytes_, .origin = origin});
}

std::uint64_t StepTrace::write(const std::filesystem::path& path) const {
  return write(path, assemble(), std::nullopt);
}

// The trace of another rank than 0 as a text: how many events found no room, and the file; or an empty line,
// and what went wrong.
std::string StepTrace::text(const trace::Trace& trace, std::int64_t origin) const {
  try {
    const std::filesystem::path temporary =
        std::filesystem::temp_directory_path() / fmt::format("purine-trace-{}-{}.json", ::getpid(), rank_);
    const std::uint64_t left_out = write(temporary, trace, origin);
    std::string text = fmt::format("{}\n{}", left_out, io::read_file(temporary));
    std::filesystem::remove(temporary);
    return text;
  } catch (const Error& error) {
    return fmt::format("\n{}: {}", error.path(), error.message());
  } catch (const std::exception& error) {
    return fmt::format("\n{}", error.what());
  }
}

// Brings the times of all ranks to rank 0's clock.
void StepTrace::align(trace::Trace& trace, Runtime& runtime) {
  Endpoint* endpoint = runtime.endpoint();
  if (endpoint == nullptr) return;
  clocks_.push_back(net::measure_clock_offset(*endpoint, SteadyClock()));
  move_to_first_clock(trace, clocks_);
  const std::vector<std::string> texts = gather_texts(runtime, message_ends(trace));
  std::vector<std::int64_t> moves;
  if (rank_ == 0) moves = moves_for(texts);
  const std::vector<std::string> all = endpoint->all_gather(fmt::format("{}", fmt::join(moves, " ")));
  std::istringstream words(all.front());
  std::int64_t move = 0;
  for (std::int32_t rank = 0; rank <= rank_; ++rank) words >> move;
  trace.shift(move);
}

StepTrace::Written StepTrace::write_all(Runtime& runtime, const std::filesystem::path& path) {
  trace::Trace trace = assemble();
  align(trace, runtime);
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const trace::OperatorEvent& event : trace.events) origin = std::min(origin, event.begin);
  origin = std::ranges::min(gather_values(runtime.endpoint(), origin));
  const std::vector<std::string> texts =
      gather_texts(runtime, rank_ == 0 ? std::string() : text(trace, origin));
  Written written;
  if (rank_ != 0) return written;
  try {
    written.left_out = write(path, trace, origin);
    for (std::size_t rank = 1; rank < texts.size(); ++rank) {
      const std::size_t line = texts[rank].find('\n');
      const std::string_view rest = std::string_view(texts[rank]).substr(line + 1);
      if (line == 0) throw Error("trace", fmt::format("rank {} could not write its own: {}", rank, rest));
      written.left_out += std::stoull(texts[rank]);
      io::write_file(trace::rank_file(path, static_cast<int>(rank)), rest);
    }
  } catch (const Error& error) {
    written.error = error;
  }
  return written;
}

}  // namespace purine::train
