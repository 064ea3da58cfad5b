#include "purine/trace/recorder.h"

#include <algorithm>
#include <utility>

namespace purine::trace {

Recorder::Recorder(std::vector<std::string> tracks, const RecorderOptions& options)
    : capacity_(options.capacity),
      first_iteration_(options.first_iteration),
      end_iteration_(options.end_iteration),
      tracks_(tracks.size()),
      track_names_(std::move(tracks)) {
  for (Track& track : tracks_) track.slots = std::make_unique<Slot[]>(capacity_);
}

void Recorder::set_iterations(std::int64_t first, std::int64_t end) noexcept {
  first_iteration_.store(first, std::memory_order_relaxed);
  end_iteration_.store(end, std::memory_order_relaxed);
}

std::uint32_t Recorder::name(std::string_view text) {
  const auto found = std::ranges::find(names_, text);
  const auto index = static_cast<std::uint32_t>(found - names_.begin());
  if (found == names_.end()) names_.emplace_back(text);
  return index;
}

std::uint64_t Recorder::dropped() const {
  std::uint64_t dropped = 0;
  for (const Track& track : tracks_) {
    const std::size_t count = track.next.load(std::memory_order_relaxed);
    dropped += count - std::min(count, capacity_);
  }
  return dropped;
}

Trace Recorder::trace() const {
  Trace trace;
  trace.tracks = track_names_;
  trace.names = names_;
  trace.dropped = dropped();
  for (std::size_t t = 0; t < tracks_.size(); ++t) {
    const std::size_t count = std::min(tracks_[t].next.load(std::memory_order_relaxed), capacity_);
    const auto track = static_cast<std::int32_t>(t);
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = tracks_[t].slots[i];
      switch (slot.kind.load(std::memory_order_acquire)) {
        case Kind::op:
          trace.events.push_back({slot.subject, slot.part, track, slot.iteration, slot.begin, slot.end});
          break;
        case Kind::span:
          trace.spans.push_back({slot.subject, track, slot.begin, slot.end});
          break;
        case Kind::counter:
          trace.counters.push_back({slot.subject, track, slot.begin, std::bit_cast<double>(slot.end)});
          break;
        case Kind::none:
          break;
      }
    }
  }
  trace.sort();
  return trace;
}

void Recorder::clear() {
  for (Track& track : tracks_) {
    const std::size_t count = std::min(track.next.load(std::memory_order_relaxed), capacity_);
    for (std::size_t i = 0; i < count; ++i) track.slots[i].kind.store(Kind::none, std::memory_order_relaxed);
    track.next.store(0, std::memory_order_relaxed);
  }
}

}  // namespace purine::trace
