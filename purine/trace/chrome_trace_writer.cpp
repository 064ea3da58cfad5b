#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/version.h"
#include "purine/io/atomic_file.h"
#include "purine/io/json_text.h"
#include "purine/trace/chrome_trace.h"

namespace purine::trace {
namespace {

constexpr std::size_t bytes_of_end = 512;  // more than what follows the events takes

using io::json_text;

/// Microseconds with three decimals; a time before the origin, which only a clock that went back gives, is 0.
std::string microseconds(std::int64_t nanoseconds) {
  nanoseconds = std::max<std::int64_t>(0, nanoseconds);
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

class Writer {
 public:
  Writer(const std::filesystem::path& path, const Trace& trace, std::uint64_t max_bytes)
      : trace_(trace), max_bytes_(max_bytes), file_(path) {
    origin_ = std::numeric_limits<std::int64_t>::max();
    for (const OperatorEvent& event : trace_.events) origin_ = std::min(origin_, event.begin);
    for (const SpanEvent& span : trace_.spans) origin_ = std::min(origin_, span.begin);
    for (const CounterEvent& counter : trace_.counters) origin_ = std::min(origin_, counter.time);
    if (origin_ == std::numeric_limits<std::int64_t>::max()) origin_ = 0;
    for (const OperatorLabel& label : trace_.operators) {
      operator_starts_.push_back(
          fmt::format("\"name\":{},\"cat\":{}", json_text(label.path), json_text(label.type)));
      operator_arguments_.push_back(
          fmt::format("\"location\":{},\"shapes\":{}", json_text(label.location), json_text(label.shapes)));
    }
    for (const std::string& name : trace_.names) names_.push_back(json_text(name));
  }

  std::uint64_t write() {
    append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    append(
        fmt::format("{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"rank {}\"}}}}",
                    trace_.rank, trace_.rank));
    for (std::size_t i = 0; i < trace_.tracks.size(); ++i) {
      append(fmt::format(
          ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
          trace_.rank, i, json_text(trace_.tracks[i])));
    }
    write_events();
    append(
        fmt::format("\n],\"otherData\":{{\"purine\":\"{}\",\"origin_ns\":{},\"dropped_events\":{},"
                    "\"left_out_events\":{}}}}}\n",
                    version(), origin_, trace_.dropped, left_out_));
    file_.commit();
    return left_out_;
  }

 private:
  void append(std::string_view text) {
    file_.write(text);
    written_ += text.size();
  }

  /// Appends an event, or leaves it and all later ones out.
  void append_event(const std::string& text) {
    full_ = full_ || written_ + text.size() + bytes_of_end > max_bytes_;
    if (full_) {
      ++left_out_;
    } else {
      append(text);
    }
  }

  /// The three sorted lists merged, so that the file is sorted by time and a cut leaves out the latest.
  void write_events() {
    auto event = trace_.events.begin();
    auto span = trace_.spans.begin();
    auto counter = trace_.counters.begin();
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    for (;;) {
      const std::int64_t event_time = event == trace_.events.end() ? never : event->begin;
      const std::int64_t span_time = span == trace_.spans.end() ? never : span->begin;
      const std::int64_t counter_time = counter == trace_.counters.end() ? never : counter->time;
      const std::int64_t next = std::min({event_time, span_time, counter_time});
      if (next == never) return;
      if (next == event_time) {
        append_event(text_of(*event++));
      } else if (next == span_time) {
        append_event(text_of(*span++));
      } else if (std::isfinite(counter->value)) {
        append_event(text_of(*counter++));
      } else {
        ++left_out_;
        ++counter;
      }
    }
  }

  std::string place(std::int32_t track, std::int64_t time) const {
    return fmt::format("\"pid\":{},\"tid\":{},\"ts\":{}", trace_.rank, track, microseconds(time - origin_));
  }
  std::string text_of(const OperatorEvent& event) const {
    return fmt::format(",\n{{\"ph\":\"X\",{},\"dur\":{},{},\"args\":{{\"iteration\":{},\"part\":{},{}}}}}",
                       place(event.track, event.begin), microseconds(event.end - event.begin),
                       operator_starts_.at(event.op), event.iteration, event.part,
                       operator_arguments_.at(event.op));
  }
  std::string text_of(const SpanEvent& span) const {
    return fmt::format(",\n{{\"ph\":\"X\",{},\"dur\":{},\"name\":{},\"cat\":\"span\"}}",
                       place(span.track, span.begin), microseconds(span.end - span.begin),
                       names_.at(span.name));
  }
  std::string text_of(const CounterEvent& counter) const {
    return fmt::format(",\n{{\"ph\":\"C\",{},\"name\":{},\"args\":{{\"value\":{}}}}}",
                       place(counter.track, counter.time), names_.at(counter.name),
                       io::json_number(counter.value));
  }

  const Trace& trace_;
  std::uint64_t max_bytes_;
  io::AtomicFile file_;
  std::int64_t origin_ = 0;
  std::vector<std::string> operator_starts_;
  std::vector<std::string> operator_arguments_;
  std::vector<std::string> names_;
  std::uint64_t written_ = 0;
  std::uint64_t left_out_ = 0;
  bool full_ = false;
};

}  // namespace

std::uint64_t write_chrome_trace(const std::filesystem::path& path, const Trace& trace,
                                 const ChromeTraceOptions& options) {
  return Writer(path, trace, options.max_bytes).write();
}

}  // namespace purine::trace
