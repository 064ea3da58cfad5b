#include "purine/trace/timeline.h"

#include <algorithm>
#include <numeric>

namespace purine::trace {

Timeline::Timeline(std::span<const Trace> ranks) : ranks_(ranks) {
  last_parts_.resize(ranks.size());
  before_.resize(ranks.size());
  computes_.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    index_executions(rank);
    index_tracks(rank);
  }
  index_messages();
  find_iterations();
  find_starts();
}

Use Timeline::use(EventId id) const {
  const OperatorLabel& operator_label = label(id);
  if (operator_label.exchange) return Use::transfer;
  if (operator_label.brings_data) return Use::data;
  return operator_label.type == "copy" ? Use::copy : Use::compute;
}

std::optional<EventId> Timeline::last_part(std::size_t rank, std::uint32_t op, std::int64_t iteration) const {
  const auto found = last_parts_[rank].find({op, iteration});
  if (found == last_parts_[rank].end()) return std::nullopt;
  return EventId{rank, found->second};
}

std::optional<EventId> Timeline::before_on_track(EventId id) const {
  const std::size_t before = before_[id.rank][id.index];
  if (before == id.index) return std::nullopt;
  return EventId{id.rank, before};
}

std::optional<EventId> Timeline::other_end(EventId id) const {
  const auto found = other_ends_.find(id);
  return found == other_ends_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<EventId> Timeline::end_of(std::int64_t iteration) const {
  const auto found = ends_.find(iteration);
  return found == ends_.end() ? std::nullopt : std::optional(found->second);
}

void Timeline::index_executions(std::size_t rank) {
  const std::vector<OperatorEvent>& events = ranks_[rank].events;
  computes_[rank].resize(ranks_[rank].tracks.size());
  const auto computes_at_host = [&](std::size_t i) {
    return ranks_[rank].operators[events[i].op].location.find("/cpu:") != std::string::npos;
  };
  bool has_accelerators = false;
  for (std::size_t i = 0; i < events.size() && !has_accelerators; ++i) {
    has_accelerators = use({rank, i}) == Use::compute && !computes_at_host(i);
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto [found, added] = last_parts_[rank].try_emplace({events[i].op, events[i].iteration}, i);
    if (!added && events[found->second].end < events[i].end) found->second = i;
    const EventId id{rank, i};
    const auto [end, is_first] = ends_.try_emplace(events[i].iteration, id);
    if (!is_first && event(end->second).end < events[i].end) end->second = id;
    // Beside accelerators the host's workers bring data in and hand values out.
    const bool is_theirs = has_accelerators && computes_at_host(i) && label(id).operations == 0;
    if (use(id) != Use::transfer && use(id) != Use::copy && !is_theirs) {
      computes_[rank][static_cast<std::size_t>(events[i].track)] = 1;
    }
  }
}

void Timeline::index_tracks(std::size_t rank) {
  const std::vector<OperatorEvent>& events = ranks_[rank].events;
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return events[i].end; });
  before_[rank] = order;
  std::vector<std::optional<std::size_t>> last(ranks_[rank].tracks.size());
  for (const std::size_t i : order) {
    std::optional<std::size_t>& before = last[static_cast<std::size_t>(events[i].track)];
    before_[rank][i] = before.value_or(i);
    before = i;
  }
}

void Timeline::index_messages() {
  using Name = std::tuple<std::int32_t, std::int32_t, std::uint32_t, std::int64_t>;
  std::map<Name, EventId> sends;  // by sender, receiver, channel and iteration
  const auto visit = [&](const auto& take) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].events.size(); ++i) {
        const std::optional<ExchangeLabel>& exchange = label({rank, i}).exchange;
        if (exchange) take(*exchange, ranks_[rank].rank, EventId{rank, i});
      }
    }
  };
  visit([&](const ExchangeLabel& exchange, std::int32_t rank, EventId id) {
    if (exchange.sends) sends[{rank, exchange.peer, exchange.channel, event(id).iteration}] = id;
  });
  visit([&](const ExchangeLabel& exchange, std::int32_t rank, EventId id) {
    if (exchange.sends) return;
    const auto send = sends.find({exchange.peer, rank, exchange.channel, event(id).iteration});
    if (send == sends.end()) return;
    other_ends_[id] = send->second;
    other_ends_[send->second] = id;
  });
}

// Of a trace that ran full, the last iterations may lack events.
void Timeline::find_iterations() {
  std::map<std::int64_t, std::size_t> counts;
  bool is_whole = true;
  for (const Trace& trace : ranks_) {
    is_whole = is_whole && trace.dropped == 0;
    for (const OperatorEvent& event : trace.events) ++counts[event.iteration];
  }
  if (counts.empty()) return;
  first_iteration_ = counts.begin()->first;
  last_iteration_ = counts.rbegin()->first;
  if (is_whole) return;
  std::size_t most = 0;
  for (const auto& [iteration, count] : counts) most = std::max(most, count);
  while (last_iteration_ > first_iteration_ && counts[last_iteration_] < most) --last_iteration_;
}

std::int64_t Timeline::iterations_in_progress() const {
  std::map<std::int64_t, std::int64_t> begins;
  for (const Trace& trace : ranks_) {
    for (const OperatorEvent& event : trace.events) {
      if (trace.operators[event.op].exchange) continue;  // memory is offered long before
      const auto [found, added] = begins.try_emplace(event.iteration, event.begin);
      if (!added) found->second = std::min(found->second, event.begin);
    }
  }
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const auto& [iteration, begin] : begins) {
    changes.emplace_back(begin, 1);
    changes.emplace_back(event(*end_of(iteration)).end, -1);
  }
  std::ranges::sort(changes);
  std::int64_t now = 0;
  std::int64_t most = 1;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

void Timeline::find_starts() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    starts_.emplace_back();
    for (std::size_t i = 0; i < ranks_[rank].events.size(); ++i) {
      const EventId id{rank, i};
      const OperatorEvent& own = event(id);
      std::int64_t start = own.begin;
      const auto not_before = [&](std::int64_t time) {
        if (time <= own.end) start = std::max(start, time);
      };
      if (const std::optional<EventId> other = other_end(id)) not_before(event(*other).begin);
      if (!label(id).exchange) {
        for (const Dependency& dependency : label(id).after) {
          const auto last = last_part(rank, dependency.op, own.iteration - dependency.tokens);
          if (last) not_before(event(*last).end);
        }
        if (const auto before = before_on_track(id)) not_before(event(*before).end);
      }
      starts_.back().push_back(start);
    }
  }
}

}  // namespace purine::trace
