// The trace of a few steps of a session.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/net/clock_offset.h"
#include "purine/session/session.h"
#include "purine/trace/recorder.h"

namespace purine::train {

/// Records what workers and queues run and what ranks exchange in chosen iterations: give `hook()` to the
/// session, and write the file when the iterations are over.
class StepTrace {
 public:
  /// Iterations [first, end) on the devices of a runtime, for a file of so many megabytes. `about` is told in
  /// the trace, after what is known of the machine.
  StepTrace(std::int64_t first, std::int64_t end, std::int64_t megabytes, const Runtime& runtime,
            std::vector<std::pair<std::string, std::string>> about = {});

  std::function<void(const RanEvent&)> hook();
  /// Compares this rank's clock with rank 0's, before the run; `write_all` does it again, and takes what lies
  /// between for even. A collective call.
  void compare_clocks(const Runtime& runtime);
  /// What rank 0's trace tells of the run, so that it can be simulated.
  void describe(trace::RunDescription run) { run_ = std::move(run); }
  std::int64_t end() const { return end_; }
  /// True if anything was recorded.
  bool has_events() const { return first_program_.load() != nullptr; }
  /// Writes what this rank has recorded in Chrome's format, by its own clock; the session must not run
  /// meanwhile. Returns how many events found no room.
  std::uint64_t write(const std::filesystem::path& path) const;
  /// What became of the traces of all ranks.
  struct Written {
    std::uint64_t left_out = 0;  ///< events that found no room
    std::optional<Error> error;  ///< why one could not be written, where one couldn't
  };
  /// Writes them at rank 0, which alone knows how it went: its own to `path`, the others' beside it,
  /// `trace.rank1.json` for `trace.json`. All have the times of rank 0's clock, by which no message comes
  /// before it was sent, and begin at the same one. A collective call.
  Written write_all(Runtime& runtime, const std::filesystem::path& path);

 private:
  trace::Trace assemble() const;
  std::uint64_t write(const std::filesystem::path& path, const trace::Trace& trace,
                      std::optional<std::int64_t> origin) const;
  std::string text(const trace::Trace& trace, std::int64_t origin) const;
  void align(trace::Trace& trace, Runtime& runtime);
  void record(const RanEvent& event);
  bool claim(const Program* program);
  int track_of(const RanEvent& event) const;

  std::map<std::pair<Location, LaneKind>, int> queue_tracks_;
  std::int32_t rank_;
  int workers_;
  int sends_track_;
  std::int64_t end_;
  std::uint64_t max_bytes_;
  trace::Recorder recorder_;
  std::vector<std::pair<std::string, std::string>> about_;
  std::optional<trace::RunDescription> run_;
  std::vector<net::ClockOffset> clocks_;  // one or two, in order of time
  // The programs that events came from: a session has one for whole batches and one for an epoch's last.
  // Their operators are numbered one behind the other.
  std::atomic<const Program*> first_program_ = nullptr;
  std::atomic<const Program*> second_program_ = nullptr;
};

}  // namespace purine::train
