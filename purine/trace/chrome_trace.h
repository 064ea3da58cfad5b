// Traces as files that Chrome (chrome://tracing) and Perfetto (https://ui.perfetto.dev) show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "purine/trace/trace.h"

namespace purine::trace {

struct ChromeTraceOptions {
  std::uint64_t max_bytes = 64'000'000;  ///< the file is not larger; see write_chrome_trace
  /// The time that is 0 in the file, which the traces of several ranks share; the trace's first if not given.
  std::optional<std::int64_t> origin = {};
};

/// Writes a trace as JSON in the "trace event format": a complete event (`"ph": "X"`) an operator's part,
/// with the operator's path as its name, its type as category, the rank as process and the track as thread,
/// and location, iteration, part and shapes as arguments; spans likewise, with the category `span`; counters
/// (`"ph": "C"`); names of the process and of its threads. A receive is a mark (`"ph": "i"`) at its end,
/// since what lies between is mostly waiting; when its memory was offered is an argument. Times are
/// microseconds from the origin, with all nanoseconds.
///
/// `operators` is a table of what else is known of them: cost, what each waits for, memory. An event's
/// argument `op` is an index into it. `otherData` holds the origin, how the clock was compared with rank 0's,
/// the planned memory, what is told of the run, and how many events were dropped when recording.
///
/// The file is replaced as a whole (see io::AtomicFile): whoever reads it, even after a kill at any moment,
/// sees valid JSON. When `max_bytes` don't suffice, the latest events are left out, and `otherData` says how
/// many; a table that would take more than half of them is left out first. Counters whose value is not
/// finite, which JSON cannot hold, are left out and counted there too. Returns the number of events left out.
std::uint64_t write_chrome_trace(const std::filesystem::path& path, const Trace& trace,
                                 const ChromeTraceOptions& options = {});

/// Reads what write_chrome_trace wrote. Names, tracks, and operators of a file without a table are those that
/// the file's events name, in the order of their first event; what was left out counts as dropped. Anything
/// else throws Error naming the file.
Trace read_chrome_trace(const std::filesystem::path& path);

}  // namespace purine::trace
