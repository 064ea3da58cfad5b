#include "purine/trace/report_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace purine::trace {

LanesOfRank lanes_of(const Timeline& timeline, std::size_t rank, int most_rows) {
  const Trace& trace = timeline.ranks()[rank];
  LanesOfRank result;
  std::vector<int> of_track(trace.tracks.size(), -1);
  std::map<std::pair<bool, std::int32_t>, int> of_link;  // by direction and peer
  const auto add = [&](std::string name) {
    result.lanes.push_back({std::move(name), 1});
    return static_cast<int>(result.lanes.size() - 1);
  };
  for (const OperatorEvent& event : trace.events) {
    if (!trace.operators[event.op].exchange) of_track[static_cast<std::size_t>(event.track)] = 0;
  }
  for (std::size_t track = 0; track < of_track.size(); ++track) {
    if (of_track[track] == 0) of_track[track] = add(trace.tracks[track]);
  }
  for (const OperatorEvent& event : trace.events) {
    const std::optional<ExchangeLabel>& exchange = trace.operators[event.op].exchange;
    if (exchange) of_link[{exchange->sends, exchange->peer}] = -1;
  }
  for (auto& [link, lane] : of_link) {
    lane = add(fmt::format("{} rank {}", link.first ? "to" : "from", link.second));
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const OperatorEvent& event = trace.events[i];
    const std::optional<ExchangeLabel>& exchange = trace.operators[event.op].exchange;
    const int lane = exchange ? of_link.at({exchange->sends, exchange->peer})
                              : of_track[static_cast<std::size_t>(event.track)];
    result.events.push_back({i, lane, 0, timeline.start({rank, i}), event.end});
  }
  std::ranges::stable_sort(result.events, {},
                           [](const Placed& each) { return std::pair(each.start, each.end); });
  std::vector<std::vector<std::int64_t>> free_from(result.lanes.size());
  for (Placed& each : result.events) {
    std::vector<std::int64_t>& rows = free_from[static_cast<std::size_t>(each.lane)];
    auto row = std::ranges::find_if(rows, [&](std::int64_t time) { return time <= each.start; });
    if (row == rows.end() && static_cast<int>(rows.size()) < most_rows) row = rows.insert(row, each.start);
    if (row == rows.end()) --row;
    each.row = static_cast<int>(row - rows.begin());
    each.start = std::max(each.start, *row);
    each.end = std::max(each.start, each.end);
    *row = each.end;
  }
  for (std::size_t lane = 0; lane < result.lanes.size(); ++lane) {
    result.lanes[lane].rows = std::max(1, static_cast<int>(free_from[lane].size()));
  }
  std::ranges::stable_sort(result.events, {}, &Placed::start);
  return result;
}

}  // namespace purine::trace
