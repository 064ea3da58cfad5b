#include "purine/trace/message_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

namespace purine::trace {
namespace {

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

}  // namespace

double NetworkSpeed::slowest_link() const {
  return std::ranges::min(links, {}, &LinkSpeed::bytes_per_second).bytes_per_second;
}

MessageTimes::MessageTimes(const Timeline& timeline, const NetworkSpeed& network)
    : timeline_(timeline), network_(network) {
  const std::size_t links = network.links.size();
  if (links == 0) return;
  const std::size_t switch_lane = 2 * links;
  std::vector<std::vector<Work>> work(switch_lane + 1);
  for (std::size_t rank = 0; rank < timeline.ranks().size(); ++rank) {
    const Trace& trace = timeline.ranks()[rank];
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const EventId id{rank, i};
      const std::optional<ExchangeLabel>& exchange = timeline.label(id).exchange;
      if (!exchange || (exchange->sends && timeline.other_end(id))) continue;  // its receive stands for it
      const Ends ends = ends_of(id);
      if (ends.sender >= links || ends.receiver >= links) continue;
      const std::int64_t chunks = network.chunks_of(exchange->bytes);
      const auto add = [&](std::size_t lane, double bytes_per_second, double message_seconds) {
        const auto bytes = static_cast<double>(exchange->bytes);
        const double for_bytes = bytes_per_second > 0 ? bytes / bytes_per_second : 0;
        const double for_messages = static_cast<double>(chunks) * message_seconds;
        const std::int64_t end = trace.events[i].end - latency_of(ends);
        const std::int64_t needs = nanoseconds(for_bytes + for_messages);
        if (needs == 0) return;
        work[lane].push_back({timeline.start(id), end, needs, for_bytes / (for_bytes + for_messages)});
      };
      const LinkSpeed& out = network.links[ends.sender];
      add(2 * ends.sender, out.bytes_per_second, out.message_seconds);
      add(2 * ends.receiver + 1, network.links[ends.receiver].bytes_per_second, 0);
      add(switch_lane, network.switch_bytes_per_second, 0);
    }
  }
  for (std::vector<Work>& each : work) lanes_.push_back(lay_out(std::move(each)));
}

MessageTimes::Ends MessageTimes::ends_of(EventId id) const {
  const ExchangeLabel& exchange = *timeline_.label(id).exchange;
  const auto own = static_cast<std::size_t>(timeline_.trace(id).rank);
  const auto peer = static_cast<std::size_t>(exchange.peer);
  return exchange.sends ? Ends{own, peer} : Ends{peer, own};
}

std::int64_t MessageTimes::latency_of(const Ends& ends) const {
  return nanoseconds(network_.links[ends.sender].latency);
}

// Goes back in time, and at each moment does the work that may begin latest: then as much as can be done is.
MessageTimes::Lane MessageTimes::lay_out(std::vector<Work> work) {
  Lane lane;
  std::ranges::sort(work, std::greater(), &Work::end);
  const auto begins_earlier = [&](std::size_t a, std::size_t b) { return work[a].begin < work[b].begin; };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(begins_earlier)> waiting(
      begins_earlier);
  std::int64_t time = std::numeric_limits<std::int64_t>::max();
  for (std::size_t next = 0; next < work.size() || !waiting.empty();) {
    if (waiting.empty()) time = std::min(time, work[next].end);
    for (; next < work.size() && work[next].end >= time; ++next) waiting.push(next);
    Work& now = work[waiting.top()];
    std::int64_t until = std::max(now.begin, time - now.left);
    if (next < work.size()) until = std::max(until, work[next].end);
    if (until < time) {
      lane.push_back({until, time, now.rate_share});
      now.left -= time - until;
      time = until;
    }
    if (now.left == 0 || time <= now.begin) waiting.pop();
  }
  std::ranges::reverse(lane);
  return lane;
}

MessageTime MessageTimes::of(EventId id, std::int64_t begin, std::int64_t end) const {
  MessageTime parts;
  const Ends ends = ends_of(id);
  if (!are_known() || std::max(ends.sender, ends.receiver) >= network_.links.size()) {
    parts.waiting = end - begin;
    return parts;
  }
  const std::int64_t latency = latency_of(ends);
  const std::int64_t departed = std::max(begin, std::min(end, timeline_.event(id).end - latency));
  parts.latency = end - departed;
  std::vector<Occupied> occupied;
  for (const std::size_t lane : {2 * ends.sender, 2 * ends.receiver + 1, lanes_.size() - 1}) {
    auto each = std::ranges::upper_bound(lanes_[lane], begin, {}, &Occupied::end);
    for (; each != lanes_[lane].end() && each->begin < departed; ++each) {
      occupied.push_back({std::max(each->begin, begin), std::min(each->end, departed), each->rate_share});
    }
  }
  std::ranges::stable_sort(occupied, {}, &Occupied::begin);
  std::int64_t until = begin;
  for (const Occupied& each : occupied) {
    const std::int64_t time = std::max<std::int64_t>(0, each.end - std::max(each.begin, until));
    const auto rate = std::llround(static_cast<double>(time) * each.rate_share);
    parts.rate += rate;
    parts.messages += time - rate;
    until = std::max(until, each.end);
  }
  parts.waiting = departed - begin - parts.rate - parts.messages;
  // The word that there is memory had to come first, and may have been on its way when the send began.
  const bool sends = timeline_.label(id).exchange->sends;
  const std::optional<EventId> receive = sends ? timeline_.other_end(id) : id;
  if (!receive) return parts;
  const std::int64_t offered = timeline_.event(*receive).begin;
  const std::int64_t came = offered + nanoseconds(network_.links[ends.receiver].latency);
  const std::int64_t word = std::clamp<std::int64_t>(came - begin, 0, parts.waiting);
  parts.latency += word;
  parts.waiting -= word;
  return parts;
}

}  // namespace purine::trace
