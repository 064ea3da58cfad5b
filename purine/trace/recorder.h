// Records what runs, cheaply enough to be left on.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "purine/trace/trace.h"

namespace purine::trace {

struct RecorderOptions {
  std::size_t capacity = std::size_t{1}
                         << 16;      ///< events a track, 40 bytes each; further ones are counted only
  std::int64_t first_iteration = 0;  ///< operators of earlier iterations are not recorded …
  std::int64_t end_iteration = std::numeric_limits<std::int64_t>::max();  ///< … nor of this and later ones
};

/// Holds events in one buffer a track (a worker, or a device's queue), allocated beforehand: recording takes
/// no lock, allocates nothing and costs a few nanoseconds. When a buffer is full, further events of its track
/// are dropped and counted. Any thread may record on any track at any time; a track of its own for each
/// thread is the fastest. `trace` may be called while others record: it gives the events that are whole then.
class Recorder {
 public:
  /// Tracks are named for the reader of the trace: `worker 0`, `cuda:0 compute`.
  explicit Recorder(std::vector<std::string> tracks, const RecorderOptions& options = {});
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// True for iterations that are recorded: who measures times only for the recorder need not otherwise.
  bool wants(std::int64_t iteration) const noexcept {
    return iteration >= first_iteration_.load(std::memory_order_relaxed) &&
           iteration < end_iteration_.load(std::memory_order_relaxed);
  }
  /// From now on records operators of the iterations in [first, end).
  void set_iterations(std::int64_t first, std::int64_t end) noexcept;

  /// One execution of a part of an operator; dropped if its iteration isn't wanted. Times are nanoseconds.
  void record(int track, std::uint32_t op, int part, std::int64_t iteration, std::int64_t begin,
              std::int64_t end) noexcept {
    if (wants(iteration)) put(track, Kind::op, op, part, iteration, begin, end);
  }

  /// A name for spans and counters. Names are made before the recording begins, by one thread.
  std::uint32_t name(std::string_view text);
  void span(int track, std::uint32_t name, std::int64_t begin, std::int64_t end) noexcept {
    put(track, Kind::span, name, 0, 0, begin, end);
  }
  void counter(int track, std::uint32_t name, std::int64_t time, double value) noexcept {
    put(track, Kind::counter, name, 0, 0, time, std::bit_cast<std::int64_t>(value));
  }

  int track_count() const { return static_cast<int>(tracks_.size()); }
  /// Events that found no room.
  std::uint64_t dropped() const;
  /// A copy of what is recorded: everything of a trace but the rank and the operators' labels.
  Trace trace() const;
  /// Forgets all events. Nobody may record meanwhile.
  void clear();

 private:
  enum class Kind : std::uint32_t { none, op, span, counter };
  struct Slot {
    std::atomic<Kind> kind{Kind::none};  // set last: a slot whose kind is none is empty, or half written
    std::uint32_t subject = 0;
    std::int32_t part = 0;
    std::int64_t iteration = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct alignas(64) Track {
    std::unique_ptr<Slot[]> slots;
    std::atomic<std::size_t> next{0};  // goes on counting when the slots are used up
  };

  void put(int track, Kind kind, std::uint32_t subject, int part, std::int64_t iteration, std::int64_t begin,
           std::int64_t end) noexcept {
    Track& buffer = tracks_[static_cast<std::size_t>(track)];
    const std::size_t index = buffer.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= capacity_) return;
    Slot& slot = buffer.slots[index];
    slot.subject = subject;
    slot.part = part;
    slot.iteration = iteration;
    slot.begin = begin;
    slot.end = end;
    slot.kind.store(kind, std::memory_order_release);
  }

  std::size_t capacity_;
  std::atomic<std::int64_t> first_iteration_;
  std::atomic<std::int64_t> end_iteration_;
  std::vector<Track> tracks_;
  std::vector<std::string> track_names_;
  std::vector<std::string> names_;
};

}  // namespace purine::trace
