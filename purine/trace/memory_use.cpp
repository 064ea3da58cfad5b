#include "purine/trace/memory_use.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace purine::trace {
namespace {

/// A range of addresses that comes into use, or goes out of it.
struct Change {
  std::int64_t time = 0;
  int by = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// How many tensors lie on each stretch of addresses between two that matter.
class Occupancy {
 public:
  explicit Occupancy(const std::vector<Change>& changes) {
    for (const Change& change : changes) addresses_.insert(addresses_.end(), {change.begin, change.end});
    std::ranges::sort(addresses_);
    addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
    tensors_.resize(addresses_.size());
  }

  void apply(const Change& change) {
    for (std::size_t i = index_of(change.begin); i < index_of(change.end); ++i) {
      const bool was_used = tensors_[i] > 0;
      tensors_[i] += change.by;
      const bool is_used = tensors_[i] > 0;
      if (was_used != is_used) bytes_ += (is_used ? 1 : -1) * (addresses_[i + 1] - addresses_[i]);
    }
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::size_t index_of(std::int64_t address) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(addresses_, address) - addresses_.begin());
  }

  std::vector<std::int64_t> addresses_;
  std::vector<int> tensors_;
  std::int64_t bytes_ = 0;
};

MemoryCurve curve_of(PlannedMemory planned, std::vector<Change> changes) {
  MemoryCurve curve{std::move(planned), {}, {}};
  // What ends at a time makes room for what begins then.
  std::ranges::stable_sort(changes, {},
                           [](const Change& change) { return std::pair(change.time, change.by); });
  Occupancy occupancy(changes);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    occupancy.apply(changes[i]);
    if (i + 1 < changes.size() && changes[i + 1].time == changes[i].time) continue;
    curve.times.push_back(changes[i].time);
    curve.bytes.push_back(occupancy.bytes());
  }
  return curve;
}

}  // namespace

std::vector<MemoryCurve> memory_over_time(const Timeline& timeline, std::size_t rank) {
  const Trace& trace = timeline.ranks()[rank];
  std::vector<std::vector<std::uint32_t>> readers(trace.operators.size());
  for (std::uint32_t op = 0; op < trace.operators.size(); ++op) {
    for (const Dependency& each : trace.operators[op].after) {
      if (each.value && each.tokens == 0) readers[each.op].push_back(op);
    }
  }
  std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>> lives;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const OperatorEvent& event = trace.events[i];
    if (trace.operators[event.op].outputs.empty()) continue;
    const std::int64_t start = timeline.start({rank, i});
    const auto [found, added] = lives.try_emplace({event.op, event.iteration}, start, event.end);
    found->second.first = std::min(found->second.first, start);
    found->second.second = std::max(found->second.second, event.end);
  }
  std::map<std::string, std::vector<Change>> changes;  // by location
  for (auto& [execution, life] : lives) {
    const auto& [op, iteration] = execution;
    for (const std::uint32_t reader : readers[op]) {
      const std::optional<EventId> last = timeline.last_part(rank, reader, iteration);
      if (last) life.second = std::max(life.second, timeline.event(*last).end);
    }
    for (const Storage& output : trace.operators[op].outputs) {
      const std::int64_t begin = output.offset + iteration % output.slots * output.stride;
      std::vector<Change>& there = changes[trace.operators[op].location];
      there.push_back({life.first, 1, begin, begin + output.bytes});
      there.push_back({life.second, -1, begin, begin + output.bytes});
    }
  }
  std::vector<MemoryCurve> curves;
  for (const PlannedMemory& planned : trace.memory) {
    curves.push_back(curve_of(planned, std::move(changes[planned.location])));
  }
  return curves;
}

MemoryCurve thinned(const MemoryCurve& curve, std::size_t points) {
  if (curve.times.size() <= points) return curve;
  MemoryCurve thin{curve.planned, {}, {}};
  const std::size_t groups = std::max<std::size_t>(1, points / 2);
  const std::size_t size = (curve.times.size() + groups - 1) / groups;
  for (std::size_t begin = 0; begin < curve.times.size(); begin += size) {
    const auto first = curve.bytes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = first + static_cast<std::ptrdiff_t>(std::min(size, curve.times.size() - begin));
    const auto [least, most] = std::minmax_element(first, last);
    for (const auto each : {std::min(least, most), std::max(least, most)}) {
      const auto index = static_cast<std::size_t>(each - curve.bytes.begin());
      if (!thin.times.empty() && thin.times.back() == curve.times[index]) continue;
      thin.times.push_back(curve.times[index]);
      thin.bytes.push_back(curve.bytes[index]);
    }
  }
  return thin;
}

}  // namespace purine::trace
