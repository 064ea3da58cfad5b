#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "purine/core/amount_text.h"
#include "purine/io/json_text.h"
#include "purine/trace/why.h"

namespace purine::trace {
namespace {

using io::json_number;
using io::json_text;

constexpr std::size_t most_types = 10;

std::string json(const PathShare& share) {
  return fmt::format("{{\"what\":{},\"seconds\":{},\"share\":{},\"stretches\":{}}}", json_text(share.what),
                     json_number(share.seconds), json_number(share.share), share.stretches);
}

std::string json(const RankUse& rank) {
  return fmt::format(
      "{{\"rank\":{},\"host\":{},\"tracks\":{},\"busy\":{},\"on_path\":{},\"computing\":{},\"transfers\":{},"
      "\"exposed\":{}}}",
      rank.rank, json_text(rank.host), rank.tracks, json_number(rank.busy), json_number(rank.on_path),
      json_number(rank.computing), json_number(rank.transfers), json_number(rank.exposed));
}

std::string json(const WhatIf& what_if) {
  return fmt::format("{{\"what\":{},\"seconds\":{}}}", json_text(what_if.what), json_number(what_if.seconds));
}

std::string json(const Cause& cause) {
  return fmt::format("{{\"what\":{},\"seconds\":{},\"share\":{},\"text\":{},\"hint\":{}}}",
                     json_text(cause.what), json_number(cause.seconds), json_number(cause.share),
                     json_text(cause.text), json_text(cause.hint));
}

std::string json(const SimulatedChange& change) {
  return fmt::format("{{\"what\":{},\"step_seconds\":{},\"images_per_s\":{}}}", json_text(change.what),
                     json_number(change.step_seconds), json_number(change.images_per_second));
}

/// A part of transfers, for people.
std::string_view part_label(std::string_view part) {
  if (part == "rate") return "at the rate of the links";
  if (part == "messages") return "for each message's own cost";
  return part;
}

template <typename Each>
std::string json_list(const std::vector<Each>& list) {
  std::string text;
  for (const Each& each : list) text += (text.empty() ? "" : ",") + json(each);
  return "[" + text + "]";
}

}  // namespace

std::string why_text(const Explanation& explanation) {
  if (explanation.steps == 0) return "The trace holds no whole iteration.\n";
  std::string text;
  const auto line = [&text]<typename... Arguments>(fmt::format_string<Arguments...> format,
                                                   Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
    text += '\n';
  };
  line("A step takes {:.3f} ms, over {} of the trace.", 1000 * explanation.step_seconds,
       counted_text(explanation.steps, "step"));
  if (explanation.dropped > 0) line("{} events found no room in the trace.", explanation.dropped);
  if (!explanation.has_dependencies) {
    line("The trace doesn't say what waits for what: the path below follows workers alone.");
  }
  line("\n{:<40} {:>10} {:>8}", "on the critical path", "ms a step", "share");
  for (const PathShare& use : explanation.uses) {
    if (use.seconds == 0) continue;
    line("{:<40} {:>10.3f} {:>7.1f}%", use.what, 1000 * use.seconds, 100 * use.share);
    if (use.what == use_name(Use::transfer)) {
      for (const PathShare& part : explanation.transfers) {
        if (part.seconds == 0) continue;
        line("  {:<38} {:>10.3f} {:>7.1f}%", part_label(part.what), 1000 * part.seconds, 100 * part.share);
      }
    }
    if (use.what != use_name(Use::compute)) continue;
    const std::size_t shown = std::min(explanation.operators.size(), most_types);
    double rest = use.seconds;
    for (std::size_t i = 0; i < shown; ++i) {
      const PathShare& type = explanation.operators[i];
      line("  {:<38} {:>10.3f} {:>7.1f}%", type.what, 1000 * type.seconds, 100 * type.share);
      rest -= type.seconds;
    }
    if (shown < explanation.operators.size()) {
      line("  {:<38} {:>10.3f} {:>7.1f}%", fmt::format("{} others", explanation.operators.size() - shown),
           1000 * rest, 100 * rest / explanation.step_seconds);
    }
  }
  line("\n{:<40} {:>10} {:>8} {:>10} {:>8}", "rank", "busy", "on path", "transfers", "exposed");
  for (const RankUse& rank : explanation.ranks) {
    const std::string name =
        rank.host.empty() ? fmt::format("{}", rank.rank) : fmt::format("{} at {}", rank.rank, rank.host);
    line("{:<40} {:>9.1f}% {:>7.1f}% {:>9.1f}% {:>7.1f}%", name, 100 * rank.busy, 100 * rank.on_path,
         100 * rank.transfers, 100 * rank.exposed);
  }
  if (!explanation.what_ifs.empty()) {
    line("\n{:<40} {:>10} {:>8}", "by replaying the trace", "ms a step", "change");
    for (const WhatIf& each : explanation.what_ifs) {
      const double change = each.seconds / explanation.step_seconds - 1;
      const double error = std::abs(explanation.replayed_seconds / explanation.step_seconds - 1);
      if (std::abs(change) > error) {
        line("{:<40} {:>10.3f} {:>+7.1f}%", each.what, 1000 * each.seconds, 100 * change);
      } else {
        line("{:<40} {:>19}", each.what, "about the same");
      }
    }
    line("{:<40} {:>10.3f} {:>+7.1f}%", "the replay's own error, nothing changed",
         1000 * explanation.replayed_seconds,
         100 * (explanation.replayed_seconds / explanation.step_seconds - 1));
  }
  if (const std::optional<SimulatedRun>& simulated = explanation.simulated) {
    const double rate = simulated->as_it_was.images_per_second;
    line("\n{:<40} {:>10} {:>12} {:>8}", "by simulating the job", "ms a step", "images/s", "change");
    for (const SimulatedChange& each : simulated->changes) {
      line("{:<40} {:>10.3f} {:>12.2f} {:>+7.1f}%", each.what, 1000 * each.step_seconds,
           each.images_per_second, 100 * (each.images_per_second / rate - 1));
    }
    line("{:<40} {:>10.3f} {:>12.2f}", "nothing changed", 1000 * simulated->as_it_was.step_seconds, rate);
    line("{:<40} {:>+9.1f}%", "the simulation's own error",
         100 * (simulated->as_it_was.step_seconds / explanation.step_seconds - 1));
  }
  return text + causes_text(explanation);
}

std::string causes_text(const Explanation& explanation) {
  if (explanation.causes.empty()) return "";
  std::string text = "\nWhat takes the most:\n";
  for (std::size_t i = 0; i < explanation.causes.size(); ++i) {
    const Cause& cause = explanation.causes[i];
    text += fmt::format("{}. {}.\n", i + 1, cause.text);
    if (i > 0 && cause.hint == explanation.causes[i - 1].hint) continue;
    text += fmt::format("   Hint: {}.\n", cause.hint);
  }
  return text;
}

std::string why_json(const Explanation& explanation) {
  std::string simulated;
  if (explanation.simulated) {
    simulated =
        fmt::format(",\"simulated\":{{\"as_it_was\":{},\"changes\":{}}}",
                    json(explanation.simulated->as_it_was), json_list(explanation.simulated->changes));
  }
  return fmt::format(
      "{{\"steps\":{},\"step_seconds\":{},\"dropped_events\":{},\"has_dependencies\":{},\"path\":{},"
      "\"operators\":{},\"transfers\":{},\"ranks\":{},\"causes\":{},\"replayed_seconds\":{},\"what_ifs\":{}{}"
      "}}",
      explanation.steps, json_number(explanation.step_seconds), explanation.dropped,
      explanation.has_dependencies, json_list(explanation.uses), json_list(explanation.operators),
      json_list(explanation.transfers), json_list(explanation.ranks), json_list(explanation.causes),
      json_number(explanation.replayed_seconds), json_list(explanation.what_ifs), simulated);
}

}  // namespace purine::trace
