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

constexpr std::size_t bytes_of_count = 32;  // more than the number of what is left out takes, and its end

using io::json_text;

/// Microseconds with three decimals; a time before the origin, which only a clock that went back gives, is 0.
std::string microseconds(std::int64_t nanoseconds) {
  nanoseconds = std::max<std::int64_t>(0, nanoseconds);
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

// Numbers in a row: `[1,2,3]`.
std::string row(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

// An operator's line in the table. What it waits for is three numbers each: operator, tokens, 1 for a value;
// where its outputs lie is four: offset, bytes, slots, stride.
std::string text_of(const OperatorLabel& label) {
  std::string text =
      fmt::format("{{\"path\":{},\"type\":{},\"location\":{},\"shapes\":{},\"operations\":{},\"bytes\":{}",
                  json_text(label.path), json_text(label.type), json_text(label.location),
                  json_text(label.shapes), io::json_number(label.operations), io::json_number(label.bytes));
  if (label.brings_data) text += ",\"brings_data\":true";
  if (label.exchange) {
    text += fmt::format(",\"exchange\":{{\"sends\":{},\"peer\":{},\"channel\":{},\"bytes\":{}}}",
                        label.exchange->sends, label.exchange->peer, label.exchange->channel,
                        label.exchange->bytes);
  }
  std::vector<std::int64_t> after;
  for (const Dependency& each : label.after) after.insert(after.end(), {each.op, each.tokens, each.value});
  if (!after.empty()) text += ",\"after\":" + row(after);
  std::vector<std::int64_t> outputs;
  for (const Storage& each : label.outputs) {
    outputs.insert(outputs.end(), {each.offset, each.bytes, each.slots, each.stride});
  }
  if (!outputs.empty()) text += ",\"outputs\":" + row(outputs);
  return text + "}";
}

std::string table_of(const std::vector<OperatorLabel>& operators) {
  std::string text;
  for (const OperatorLabel& label : operators) text += (text.empty() ? "" : ",\n") + text_of(label);
  return text;
}

class Writer {
 public:
  Writer(const std::filesystem::path& path, const Trace& trace, const ChromeTraceOptions& options)
      : trace_(trace), max_bytes_(options.max_bytes), file_(path) {
    origin_ = options.origin.value_or(first_time(trace));
    table_ = table_of(trace.operators);
    has_table_ = !table_.empty() && table_.size() <= max_bytes_ / 2;
    end_ = text_of_end();
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
    append(fmt::format("{}{}}}}}\n", end_, left_out_));
    file_.commit();
    return left_out_;
  }

 private:
  static std::int64_t first_time(const Trace& trace) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const OperatorEvent& event : trace.events) first = std::min(first, event.begin);
    for (const SpanEvent& span : trace.spans) first = std::min(first, span.begin);
    for (const CounterEvent& counter : trace.counters) first = std::min(first, counter.time);
    return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
  }

  /// What follows the events, up to the number of those that are left out.
  std::string text_of_end() const {
    std::string text = "\n]";
    if (has_table_) text += ",\"operators\":[\n" + table_ + "\n]";
    text += fmt::format(",\"otherData\":{{\"purine\":\"{}\",\"origin_ns\":{}", version(), origin_);
    if (trace_.clock != ClockComparison{}) {
      text += fmt::format(",\"clock_offset_ns\":{},\"clock_error_ns\":{}", trace_.clock.offset,
                          trace_.clock.error);
    }
    std::string list;
    for (const PlannedMemory& each : trace_.memory) {
      list += fmt::format("{}{{\"location\":{},\"variables\":{},\"arena\":{}}}", list.empty() ? "" : ",",
                          json_text(each.location), each.variables, each.arena);
    }
    if (!list.empty()) text += ",\"memory\":[" + list + "]";
    list.clear();
    for (const auto& [name, value] : trace_.about) {
      list += fmt::format("{}[{},{}]", list.empty() ? "" : ",", json_text(name), json_text(value));
    }
    if (!list.empty()) text += ",\"about\":[" + list + "]";
    if (const std::optional<RunDescription>& run = trace_.run) {
      text +=
          fmt::format(",\"run\":{{\"job\":{},\"cluster\":{},\"image\":[{}],\"classes\":{}}}",
                      json_text(run->job), json_text(run->cluster), fmt::join(run->image, ","), run->classes);
    }
    return text + fmt::format(",\"dropped_events\":{},\"left_out_events\":", trace_.dropped);
  }

  void append(std::string_view text) {
    file_.write(text);
    written_ += text.size();
  }

  /// Appends an event, or leaves it and all later ones out.
  void append_event(const std::string& text) {
    full_ = full_ || written_ + text.size() + end_.size() + bytes_of_count > max_bytes_;
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
    const std::optional<ExchangeLabel>& exchange = trace_.operators.at(event.op).exchange;
    const bool is_receive = exchange && !exchange->sends;
    const std::string phase = is_receive ? "\"i\",\"s\":\"t\"" : "\"X\"";
    const std::string length = is_receive ? "" : ",\"dur\":" + microseconds(event.end - event.begin);
    const std::string index = has_table_ ? fmt::format(",\"op\":{}", event.op) : "";
    const std::string offered =
        is_receive ? ",\"offered\":" + microseconds(event.begin - origin_) : std::string();
    return fmt::format(",\n{{\"ph\":{},{}{},{},\"args\":{{\"iteration\":{},\"part\":{}{},{}{}}}}}", phase,
                       place(event.track, is_receive ? event.end : event.begin), length,
                       operator_starts_.at(event.op), event.iteration, event.part, index,
                       operator_arguments_.at(event.op), offered);
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
  std::string table_;
  bool has_table_ = false;
  std::string end_;
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
  return Writer(path, trace, options).write();
}

}  // namespace purine::trace
