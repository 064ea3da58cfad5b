#include "purine/trace/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "purine/core/amount_text.h"
#include "purine/core/json_helpers.h"
#include "purine/io/json_text.h"
#include "purine/trace/memory_use.h"
#include "purine/trace/report_lanes.h"
#include "purine/trace/why.h"

namespace purine::trace {
namespace {

using io::json_number;
using io::json_text;
using Json = nlohmann::json;

constexpr std::size_t memory_points = 3000;

template <typename Numbers>
std::string row(const Numbers& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("[{}]", fmt::join(texts, ",\n"));
}

std::string pair_json(const std::pair<std::string, std::string>& pair) {
  return fmt::format("[{},{}]", json_text(pair.first), json_text(pair.second));
}

std::string pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& pair : pairs) texts.push_back(pair_json(pair));
  return joined(texts);
}

std::string fact(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.about, name, [](const auto& pair) { return pair.first; });
  return found == trace.about.end() ? "" : found->second;
}

class Builder {
 public:
  Builder(std::span<const Trace> ranks, const ReportContext& context)
      : context_(context),
        timeline_(ranks),
        path_(critical_path(timeline_)),
        explanation_(explain(timeline_, path_, {.network = context.network})) {
    explanation_.simulated = context.simulated;
    origin_ = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      lanes_.push_back(lanes_of(timeline_, rank));
      if (!lanes_.back().events.empty()) origin_ = std::min(origin_, lanes_.back().events.front().start);
      offsets_.push_back(operators_);
      operators_ += ranks[rank].operators.size();
    }
    read_metrics();
  }

  std::string run() const {
    std::vector<std::string> ranks;
    std::vector<std::string> memory;
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      ranks.push_back(rank_json(rank));
      for (const MemoryCurve& curve : memory_over_time(timeline_, rank)) memory.push_back(memory_json(curve));
    }
    return fmt::format(
        "{{\"title\":{},\"subtitle\":{},\"tiles\":{},\"why\":{},\"ranks\":{},\"offsets\":{},\"edges\":{},"
        "\"path\":{},\"memory\":{},\"metrics\":{},\"job\":{}}}",
        json_text(context_.title), json_text(subtitle()), pairs_json(tiles()), why_json(explanation_),
        joined(ranks), row(offsets_), edges_json(), path_json(), joined(memory), joined(metrics_),
        json_text(job()));
  }

 private:
  using Facts = std::vector<std::pair<std::string, std::string>>;

  std::string job() const {
    if (!context_.job.empty()) return context_.job;
    for (const Trace& trace : timeline_.ranks()) {
      if (trace.run) return trace.run->job;
    }
    return {};
  }

  std::string name_of(const Trace& trace) const {
    const std::string host = fact(trace, "host");
    const std::string name = fmt::format("rank {}", trace.rank);
    if (lanes_.size() == 1) return host.empty() ? name : host;
    return host.empty() ? name : name + " at " + host;
  }

  std::string subtitle() const {
    std::vector<std::string> words;
    if (lanes_.empty()) return "";
    const Trace& first = timeline_.ranks().front();
    if (const std::string model = fact(first, "model"); !model.empty() && model != context_.title) {
      words.push_back(model);
    }
    if (const std::string batch = fact(first, "batch"); !batch.empty()) words.push_back("batch " + batch);
    if (lanes_.size() > 1) words.push_back(fmt::format("{} ranks", lanes_.size()));
    const auto [begin, end] = timeline_.iterations();
    words.push_back(fmt::format("steps {} to {} traced", begin, end));
    if (const std::string processor = fact(first, "processor"); !processor.empty())
      words.push_back(processor);
    if (explanation_.dropped > 0) words.push_back(fmt::format("{} events left out", explanation_.dropped));
    return fmt::format("{}", fmt::join(words, " · "));
  }

  Facts tiles() const {
    Facts tiles;
    if (explanation_.steps > 0) {
      const double step = explanation_.step_seconds;
      tiles.emplace_back("a step", step >= 1      ? fmt::format("{:.2f} s", step)
                                   : step >= 1e-2 ? fmt::format("{:.0f} ms", 1e3 * step)
                                                  : fmt::format("{:.2f} ms", 1e3 * step));
      if (const std::string batch = fact(timeline_.ranks().front(), "batch"); !batch.empty()) {
        tiles.emplace_back("images a second, traced", fmt::format("{:.0f}", std::stod(batch) / step));
      }
      double busy = 0;
      double exposed = 0;
      double tracks = 0;
      for (const RankUse& rank : explanation_.ranks) {
        busy += rank.busy * static_cast<double>(rank.tracks);
        tracks += static_cast<double>(rank.tracks);
        exposed = std::max(exposed, rank.exposed);
      }
      if (tracks > 0)
        tiles.emplace_back("of workers and queues busy", fmt::format("{:.0f}%", 100 * busy / tracks));
      if (lanes_.size() > 1)
        tiles.emplace_back("of a step exposed transfers", fmt::format("{:.1f}%", 100 * exposed));
    }
    std::int64_t peak = 0;
    for (const Trace& trace : timeline_.ranks()) {
      for (const PlannedMemory& each : trace.memory) {
        peak = std::max(peak, each.variables + each.arena);
      }
    }
    if (peak > 0) tiles.emplace_back("of memory, at most at a device", bytes_text(peak));
    if (!test_accuracy_.empty()) tiles.emplace_back("test accuracy", test_accuracy_);
    return tiles;
  }

  static std::string operator_json(const OperatorLabel& label) {
    const std::size_t arrow = label.shapes.rfind("-> ");
    std::string use = "compute";
    if (label.exchange) use = "transfer";
    if (label.brings_data) use = "data";
    if (label.type == "copy") use = "copy";
    std::string text = fmt::format(
        "{{\"path\":{},\"type\":{},\"use\":\"{}\",\"location\":{},\"shapes\":{},\"output\":{},\"operations\":"
        "{},"
        "\"bytes\":{}",
        json_text(label.path), json_text(label.type), use, json_text(label.location), json_text(label.shapes),
        json_text(arrow == std::string::npos ? "" : label.shapes.substr(arrow + 3)),
        json_number(label.operations), json_number(label.bytes));
    if (label.exchange) text += fmt::format(",\"message\":{}", label.exchange->bytes);
    return text + "}";
  }

  std::string rank_json(std::size_t rank) const {
    const Trace& trace = timeline_.ranks()[rank];
    std::vector<std::string> lanes;
    for (const Lane& lane : lanes_[rank].lanes) {
      lanes.push_back(fmt::format("{{\"name\":{},\"rows\":{}}}", json_text(lane.name), lane.rows));
    }
    std::vector<std::string> operators;
    for (const OperatorLabel& label : trace.operators) operators.push_back(operator_json(label));
    std::vector<std::uint32_t> op;
    std::vector<int> lane;
    std::vector<int> rows;
    std::vector<std::int64_t> start, length, waited, iteration, part;
    std::int64_t before = origin_;
    for (const Placed& each : lanes_[rank].events) {
      const OperatorEvent& event = trace.events[each.event];
      op.push_back(event.op);
      lane.push_back(each.lane);
      rows.push_back(each.row);
      start.push_back(each.start - before);
      length.push_back(each.end - each.start);
      waited.push_back(each.start - event.begin);
      iteration.push_back(event.iteration);
      part.push_back(event.part);
      before = each.start;
    }
    return fmt::format(
        "{{\"name\":{},\"about\":{},\"lanes\":{},\"operators\":{},\"packed\":{{\"op\":{},\"lane\":{},\"row\":"
        "{},"
        "\"start\":{},\"length\":{},\"waited\":{},\"iteration\":{},\"part\":{}}}}}",
        json_text(name_of(trace)), pairs_json(about(trace)), joined(lanes), joined(operators), row(op),
        row(lane), row(rows), row(start), row(length), row(waited), row(iteration), row(part));
  }

  Facts about(const Trace& trace) const {
    Facts about = trace.about;
    if (trace.clock.error > 0) {
      about.emplace_back("clock", fmt::format("compared with rank 0's to {:.0f} us",
                                              static_cast<double>(trace.clock.error) / 1e3));
    }
    for (const PlannedMemory& each : trace.memory) {
      about.emplace_back("memory at " + each.location,
                         fmt::format("{} of variables, {} for all else", bytes_text(each.variables),
                                     bytes_text(each.arena)));
    }
    return about;
  }

  /// Values, by the numbers that operators have over all ranks: within ranks, and by messages between them.
  std::string edges_json() const {
    std::vector<std::string> edges;
    std::map<std::tuple<std::int32_t, std::int32_t, std::uint32_t>, std::size_t> sends;
    const auto visit = [&](const auto& take) {
      for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
        const Trace& trace = timeline_.ranks()[rank];
        for (std::size_t op = 0; op < trace.operators.size(); ++op) {
          take(trace.rank, trace.operators[op], offsets_[rank] + op, offsets_[rank]);
        }
      }
    };
    visit([&](std::int32_t rank, const OperatorLabel& label, std::size_t id, std::size_t offset) {
      for (const Dependency& each : label.after) {
        if (each.value) edges.push_back(fmt::format("[{},{},{}]", offset + each.op, id, each.tokens));
      }
      if (label.exchange && label.exchange->sends) {
        sends[{rank, label.exchange->peer, label.exchange->channel}] = id;
      }
    });
    visit([&](std::int32_t rank, const OperatorLabel& label, std::size_t id, std::size_t) {
      if (!label.exchange || label.exchange->sends) return;
      const auto send = sends.find({label.exchange->peer, rank, label.exchange->channel});
      if (send != sends.end()) edges.push_back(fmt::format("[{},{},0]", send->second, id));
    });
    return joined(edges);
  }

  std::string path_json() const {
    std::vector<std::vector<std::size_t>> drawn(lanes_.size());  // by rank and event: where it is drawn
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      drawn[rank].resize(lanes_[rank].events.size());
      for (std::size_t i = 0; i < lanes_[rank].events.size(); ++i)
        drawn[rank][lanes_[rank].events[i].event] = i;
    }
    std::vector<std::string> stretches;
    for (const Stretch& each : path_.stretches) {
      stretches.push_back(fmt::format("{{\"rank\":{},\"event\":{},\"begin\":{},\"end\":{},\"use\":\"{}\"}}",
                                      each.event.rank, drawn[each.event.rank][each.event.index],
                                      each.begin - origin_, each.end - origin_, use_name(each.use)));
    }
    return joined(stretches);
  }

  static std::string memory_json(const MemoryCurve& whole) {
    const MemoryCurve curve = thinned(whole, memory_points);
    return fmt::format("{{\"location\":{},\"variables\":{},\"arena\":{},\"times\":{},\"bytes\":{}}}",
                       json_text(curve.planned.location), curve.planned.variables, curve.planned.arena,
                       row(curve.times), row(curve.bytes));
  }

  void read_metrics() {
    std::istringstream lines(context_.metrics);
    for (std::string line; std::getline(lines, line);) {
      const Json json = parse_json(line, nullptr, false);
      if (!json.is_object() || !json.contains("step")) continue;
      metrics_.push_back(json.dump());
      if (json.contains("phase") && json.at("phase") == "test" && json.contains("accuracy") &&
          json.at("accuracy").is_number()) {
        test_accuracy_ = fmt::format("{:.2f}%", 100 * json.at("accuracy").get<double>());
      }
    }
  }

  const ReportContext& context_;
  Timeline timeline_;
  CriticalPath path_;
  Explanation explanation_;
  std::int64_t origin_ = 0;
  std::vector<LanesOfRank> lanes_;    // by rank
  std::vector<std::size_t> offsets_;  // by rank: the number of its first operator over all
  std::size_t operators_ = 0;
  std::vector<std::string> metrics_;
  std::string test_accuracy_;
};

}  // namespace

std::string report_data(std::span<const Trace> ranks, const ReportContext& context) {
  return Builder(ranks, context).run();
}

}  // namespace purine::trace
