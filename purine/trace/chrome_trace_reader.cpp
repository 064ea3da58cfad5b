#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/json_problem.h"
#include "purine/io/file.h"
#include "purine/trace/chrome_trace.h"

namespace purine::trace {
namespace {

using Json = nlohmann::json;

Error failure(std::string_view message, std::string_view hint = {}) {
  return Error("trace", message, hint);
}

class Reader {
 public:
  Trace read(const std::string& text) {
    // Each event is taken in as soon as it is parsed and not kept as JSON, which needs many times its memory.
    const auto take = [this](int depth, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::key && depth == 1) section_ = parsed.get<std::string>();
      if (event != Json::parse_event_t::object_end || depth != 2) return true;
      if (section_ == "traceEvents") {
        add(parsed);
      } else if (section_ == "operators") {
        add_operator(parsed);
      } else {
        return true;
      }
      return false;
    };
    try {
      const Json json = parse_json(text, take);
      if (!json.is_object() || !json.contains("traceEvents") || !json.contains("otherData")) {
        throw failure("is JSON, but not a trace of purine");
      }
      const Json& other = json.at("otherData");
      const auto origin = integer<std::int64_t>(other.at("origin_ns"));
      if (origin < -largest_origin || origin > largest_origin)
        throw failure("has an origin that is out of range");
      take_table();
      for (OperatorEvent& event : trace_.events) std::tie(event.begin, event.end) = shifted(event, origin);
      for (SpanEvent& span : trace_.spans) std::tie(span.begin, span.end) = shifted(span, origin);
      for (CounterEvent& counter : trace_.counters) counter.time += origin;
      trace_.dropped = count(other.at("dropped_events")) + count(other.at("left_out_events"));
      add_facts(other);
    } catch (const Json::exception& error) {
      throw failure(json_problem(text, error),
                    "name a trace, as a job with trace.steps above 0 leaves and purine bench --trace writes");
    }
    trace_.sort();
    return std::move(trace_);
  }

 private:
  template <typename Event>
  static std::pair<std::int64_t, std::int64_t> shifted(const Event& event, std::int64_t origin) {
    return {event.begin + origin, event.end + origin};
  }

  // An origin below 126 years, times below 32 years from there and durations below 12 days leave all sums of
  // an analysis in range.
  static constexpr std::int64_t largest_origin = 4'000'000'000'000'000'000;
  static constexpr double largest_time = 1e18;
  static constexpr double largest_duration = 1e15;
  static constexpr double largest_amount = 1e18;  // of bytes and operations

  // The events' operators are those of the table, or those that they name; a file has one or the other.
  void take_table() {
    if (table_.empty() && indexed_events_ == 0) return;
    if (indexed_events_ != trace_.events.size()) throw failure("has events that are not in its table");
    for (const OperatorEvent& event : trace_.events) check_operator(event.op);
    for (const OperatorLabel& label : table_) {
      for (const Dependency& dependency : label.after) check_operator(dependency.op);
    }
    trace_.operators = std::move(table_);
  }
  void check_operator(std::uint32_t op) const {
    if (op >= table_.size()) {
      throw failure("names operator " + std::to_string(op) + ", and its table has " +
                    std::to_string(table_.size()));
    }
  }

  static double amount(const Json& json) {
    const double value = json.get<double>();
    if (!(value >= 0 && value < largest_amount))
      throw failure("has a number that is out of range: " + json.dump());
    return value;
  }
  static std::int64_t bytes(const Json& json) {
    return static_cast<std::int64_t>(amount(integer<std::int64_t>(json)));
  }

  void add_operator(const Json& json) {
    OperatorLabel label{json.at("path").get<std::string>(), json.at("type").get<std::string>(),
                        json.at("location").get<std::string>(), json.at("shapes").get<std::string>()};
    label.operations = amount(json.at("operations"));
    label.bytes = amount(json.at("bytes"));
    label.brings_data = json.value("brings_data", false);
    if (json.contains("exchange")) {
      const Json& exchange = json.at("exchange");
      label.exchange = {exchange.at("sends").get<bool>(), integer<std::int32_t>(exchange.at("peer")),
                        integer<std::uint32_t>(exchange.at("channel")), bytes(exchange.at("bytes"))};
    }
    const Json none = Json::array();
    const Json& after = json.contains("after") ? json.at("after") : none;
    for (std::size_t i = 0; i < after.size(); i += 3) {
      label.after.push_back({integer<std::uint32_t>(after.at(i)), integer<std::uint16_t>(after.at(i + 1)),
                             integer<std::uint16_t>(after.at(i + 2)) != 0});
    }
    const Json& outputs = json.contains("outputs") ? json.at("outputs") : none;
    for (std::size_t i = 0; i < outputs.size(); i += 4) {
      label.outputs.push_back({bytes(outputs.at(i)), bytes(outputs.at(i + 1)),
                               integer<std::uint16_t>(outputs.at(i + 2)), bytes(outputs.at(i + 3))});
      if (label.outputs.back().slots == 0) throw failure("has an output without slots");
    }
    table_.push_back(std::move(label));
  }

  void add_facts(const Json& other) {
    if (other.contains("clock_offset_ns")) {
      trace_.clock = {integer<std::int64_t>(other.at("clock_offset_ns")), bytes(other.at("clock_error_ns"))};
    }
    const Json none = Json::array();
    for (const Json& each : other.contains("memory") ? other.at("memory") : none) {
      trace_.memory.push_back(
          {each.at("location").get<std::string>(), bytes(each.at("variables")), bytes(each.at("arena"))});
    }
    for (const Json& each : other.contains("about") ? other.at("about") : none) {
      trace_.about.emplace_back(each.at(0).get<std::string>(), each.at(1).get<std::string>());
    }
    if (!other.contains("run")) return;
    const Json& run = other.at("run");
    RunDescription& described = trace_.run.emplace();
    described.job = run.at("job").get<std::string>();
    described.cluster = run.at("cluster").get<std::string>();
    for (const Json& extent : run.at("image")) described.image.push_back(integer<std::int64_t>(extent));
    if (described.image.size() != 3) throw failure("has images that are not of three dimensions");
    described.classes = integer<std::int64_t>(run.at("classes"));
  }

  static std::int64_t time(const Json& microseconds) {
    const double value = microseconds.get<double>() * 1000;
    if (!(std::abs(value) < largest_time)) throw failure("has a time that is out of range");
    return std::llround(value);
  }

  static std::int64_t duration(const Json& microseconds) {
    const double value = microseconds.get<double>() * 1000;
    if (!(value >= 0 && value < largest_duration)) throw failure("has a duration that is out of range");
    return std::llround(value);
  }

  void add(const Json& json) {
    const std::string kind = json.at("ph").get<std::string>();
    const auto rank = integer<std::int32_t>(json.at("pid"));
    if (rank_ && *rank_ != rank) throw failure("holds the events of more than one process");
    rank_ = trace_.rank = rank;
    if (kind == "M") {
      add_name(json);
      return;
    }
    const std::int32_t track = track_of(json);
    const std::int64_t begin = time(json.at("ts"));
    const auto name = json.at("name").get<std::string>();
    if (kind == "C") {
      trace_.counters.push_back({name_of(name), track, begin, json.at("args").at("value").get<double>()});
    } else if (kind == "X" && json.at("cat") == "span" && !json.contains("args")) {
      trace_.spans.push_back({name_of(name), track, begin, begin + duration(json.at("dur"))});
    } else if (kind == "X") {
      add_event(json, track, begin, begin + duration(json.at("dur")));
    } else if (kind == "i") {
      const std::int64_t offered = time(json.at("args").at("offered"));
      if (offered > begin) throw failure("has a message that came before there was memory for it");
      add_event(json, track, offered, begin);
    } else {
      throw failure("has an event of the kind `" + kind + "`, which purine doesn't write");
    }
  }

  void add_event(const Json& json, std::int32_t track, std::int64_t begin, std::int64_t end) {
    const Json& arguments = json.at("args");
    std::uint32_t op = 0;
    if (arguments.contains("op")) {
      op = integer<std::uint32_t>(arguments.at("op"));
      ++indexed_events_;
    } else {
      op = operator_of({json.at("name").get<std::string>(), json.at("cat").get<std::string>(),
                        arguments.at("location").get<std::string>(),
                        arguments.at("shapes").get<std::string>()});
    }
    trace_.events.push_back({op, integer<std::int32_t>(arguments.at("part")), track,
                             integer<std::int64_t>(arguments.at("iteration")), begin, end});
  }

  void add_name(const Json& json) {
    if (json.at("name") != "thread_name") return;
    const auto track = static_cast<std::size_t>(track_of(json));
    trace_.tracks[track] = json.at("args").at("name").get<std::string>();
  }

  template <typename Integer>
  static Integer integer(const Json& json) {
    const bool fits = json.is_number_unsigned()  ? std::in_range<Integer>(json.get<std::uint64_t>())
                      : json.is_number_integer() ? std::in_range<Integer>(json.get<std::int64_t>())
                                                 : false;
    if (!fits) throw failure("has a number that is out of range: " + json.dump());
    return json.get<Integer>();
  }
  static std::uint64_t count(const Json& json) { return integer<std::uint32_t>(json); }

  std::int32_t track_of(const Json& json) {
    const auto track = integer<std::int32_t>(json.at("tid"));
    if (track < 0 || track >= 1 << 16)
      throw failure("has a track that is out of range: " + std::to_string(track));
    if (trace_.tracks.size() <= static_cast<std::size_t>(track))
      trace_.tracks.resize(static_cast<std::size_t>(track) + 1);
    return track;
  }

  std::uint32_t name_of(const std::string& name) {
    const auto [found, added] =
        name_index_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
    if (added) trace_.names.push_back(name);
    return found->second;
  }

  std::uint32_t operator_of(OperatorLabel label) {
    const auto [found, added] =
        operator_index_.try_emplace(std::tuple(label.path, label.type, label.location, label.shapes),
                                    static_cast<std::uint32_t>(trace_.operators.size()));
    if (added) trace_.operators.push_back(std::move(label));
    return found->second;
  }

  Trace trace_;
  std::vector<OperatorLabel> table_;
  std::size_t indexed_events_ = 0;
  std::string section_;
  std::optional<std::int32_t> rank_;
  std::map<std::string, std::uint32_t> name_index_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::uint32_t> operator_index_;
};

}  // namespace

Trace read_chrome_trace(const std::filesystem::path& path) {
  try {
    return Reader().read(io::read_file(path));
  } catch (const Error& error) {
    throw error.at(path.string());
  }
}

}  // namespace purine::trace
