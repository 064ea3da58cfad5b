#include "purine/trace/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace purine::trace {
namespace {

/// The begin of the first event and the end of the last.
std::pair<std::int64_t, std::int64_t> extent(const Trace& trace) {
  if (trace.events.empty()) return {0, 0};
  std::int64_t begin = trace.events.front().begin;
  std::int64_t end = trace.events.front().end;
  for (const OperatorEvent& event : trace.events) {
    begin = std::min(begin, event.begin);
    end = std::max(end, event.end);
  }
  return {begin, end};
}

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

/// How many events run, as time goes on. `visit(chosen, others, time)` is called for every stretch in which
/// the numbers of running events, chosen and not, stay the same.
template <typename Chosen, typename Visit>
void sweep(const Trace& trace, Chosen&& chosen, Visit&& visit) {
  struct Change {
    std::int64_t time;
    int chosen;
    int others;
  };
  std::vector<Change> changes;
  changes.reserve(2 * trace.events.size());
  for (const OperatorEvent& event : trace.events) {
    const int is_chosen = chosen(event) ? 1 : 0;
    changes.push_back({event.begin, is_chosen, 1 - is_chosen});
    changes.push_back({event.end, -is_chosen, is_chosen - 1});
  }
  std::ranges::sort(changes, {}, &Change::time);
  int running_chosen = 0;
  int running_others = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    running_chosen += changes[i].chosen;
    running_others += changes[i].others;
    const std::int64_t time = changes[i + 1].time - changes[i].time;
    if (time > 0) visit(running_chosen, running_others, time);
  }
}

std::vector<char> selected_operators(const Trace& trace, const Selector& selector) {
  std::vector<char> selected;
  for (const OperatorLabel& label : trace.operators) selected.push_back(selector(label) ? 1 : 0);
  return selected;
}

/// Calls `visit(first, second, time)` for every pair of overlaps(); stops when it returns false.
template <typename Visit>
void visit_overlaps(const Trace& trace, const Selector& a, const Selector& b, Visit&& visit) {
  const std::vector<char> in_a = selected_operators(trace, a);
  const std::vector<char> in_b = selected_operators(trace, b);
  std::vector<std::size_t> running;  // events that may not have ended yet; few, since tracks are few
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const OperatorEvent& event = trace.events[i];
    if (in_a[event.op] == 0 && in_b[event.op] == 0) continue;
    std::erase_if(running, [&](std::size_t j) { return trace.events[j].end <= event.begin; });
    for (const std::size_t j : running) {
      const OperatorEvent& other = trace.events[j];
      const bool wanted =
          (in_a[event.op] != 0 && in_b[other.op] != 0) || (in_b[event.op] != 0 && in_a[other.op] != 0);
      const bool same_execution = event.op == other.op && event.iteration == other.iteration;
      const std::int64_t time = std::min(event.end, other.end) - event.begin;
      if (wanted && !same_execution && time > 0 && !visit(j, i, time)) return;
    }
    running.push_back(i);
  }
}

}  // namespace

std::vector<TypeTotal> totals_by_type(const Trace& trace) {
  std::map<std::string, TypeTotal> by_type;
  std::set<std::pair<std::uint32_t, std::int64_t>> executions;
  std::int64_t all = 0;
  for (const OperatorEvent& event : trace.events) {
    TypeTotal& total = by_type[trace.operators[event.op].type];
    total.executions += executions.emplace(event.op, event.iteration).second ? 1 : 0;
    ++total.events;
    total.time += event.end - event.begin;
    all += event.end - event.begin;
  }
  std::vector<TypeTotal> totals;
  for (auto& [type, total] : by_type) {
    total.type = type;
    total.share = share_of(total.time, all);
    totals.push_back(std::move(total));
  }
  std::ranges::stable_sort(totals, std::greater(), &TypeTotal::time);
  return totals;
}

std::vector<TrackUsage> track_usage(const Trace& trace) {
  const auto [begin, end] = extent(trace);
  std::vector<TrackUsage> usage;
  for (const std::string& name : trace.tracks) usage.push_back({name, 0, 0, 0});
  std::vector<std::int64_t> covered(trace.tracks.size(), begin);  // time up to here is counted
  for (const OperatorEvent& event : trace.events) {
    const auto track = static_cast<std::size_t>(event.track);
    usage[track].busy += std::max<std::int64_t>(0, event.end - std::max(event.begin, covered[track]));
    covered[track] = std::max(covered[track], event.end);
  }
  for (TrackUsage& track : usage) {
    track.waiting = end - begin - track.busy;
    track.busy_share = share_of(track.busy, end - begin);
  }
  return usage;
}

TimeUsage time_usage(const Trace& trace) {
  const auto [begin, end] = extent(trace);
  std::int64_t any = 0;
  std::int64_t summed = 0;
  sweep(
      trace, [](const OperatorEvent&) { return true; },
      [&](int running, int, std::int64_t time) {
        if (running > 0) any += time;
        summed += running * time;
      });
  return {end - begin, end - begin - any, share_of(summed, any)};
}

Selector within(std::string_view path) {
  return [path = std::string(path)](const OperatorLabel& label) {
    return path.empty() || label.path == path ||
           (label.path.starts_with(path) && label.path[path.size()] == '/');
  };
}

Selector of_type(std::string_view type) {
  return [type = std::string(type)](const OperatorLabel& label) { return label.type == type; };
}

std::int64_t exposed_time(const Trace& trace, const Selector& selected) {
  const std::vector<char> chosen = selected_operators(trace, selected);
  std::int64_t exposed = 0;
  sweep(
      trace, [&](const OperatorEvent& event) { return chosen[event.op] != 0; },
      [&](int running_chosen, int running_others, std::int64_t time) {
        if (running_chosen > 0 && running_others == 0) exposed += time;
      });
  return exposed;
}

std::vector<Overlap> overlaps(const Trace& trace, const Selector& a, const Selector& b) {
  std::vector<Overlap> found;
  visit_overlaps(trace, a, b, [&](std::size_t first, std::size_t second, std::int64_t time) {
    found.push_back({first, second, time});
    return true;
  });
  return found;
}

bool ran_at_the_same_time(const Trace& trace, const Selector& a, const Selector& b) {
  bool found = false;
  visit_overlaps(trace, a, b, [&](std::size_t, std::size_t, std::int64_t) {
    found = true;
    return false;
  });
  return found;
}

std::vector<IterationOverlap> iteration_overlaps(const Trace& trace) {
  struct Extent {
    const OperatorEvent* first = nullptr;
    const OperatorEvent* last = nullptr;
  };
  std::map<std::int64_t, Extent> iterations;
  for (const OperatorEvent& event : trace.events) {
    Extent& iteration = iterations[event.iteration];
    if (iteration.first == nullptr || event.begin < iteration.first->begin) iteration.first = &event;
    if (iteration.last == nullptr || event.end > iteration.last->end) iteration.last = &event;
  }
  std::vector<IterationOverlap> found;
  for (const auto& [iteration, extent] : iterations) {
    const auto next = iterations.find(iteration + 1);
    if (next == iterations.end()) continue;
    found.push_back(
        {iteration, extent.last->op, next->second.first->op, extent.last->end - next->second.first->begin});
  }
  return found;
}

}  // namespace purine::trace
