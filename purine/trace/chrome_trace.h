// Traces as files that Chrome (chrome://tracing) and Perfetto (https://ui.perfetto.dev) show.
#pragma once

#include <cstdint>
#include <filesystem>

#include "purine/trace/trace.h"

namespace purine::trace {

struct ChromeTraceOptions {
  std::uint64_t max_bytes = 64'000'000;  ///< the file is not larger; see write_chrome_trace
};

/// Writes a trace as JSON in the "trace event format": a complete event (`"ph": "X"`) an operator's part,
/// with the operator's path as its name, its type as category, the rank as process and the track as thread,
/// and location, iteration, part and shapes as arguments; spans likewise, with the category `span`; counters
/// (`"ph": "C"`); names of the process and of its threads. Times are microseconds from the trace's first
/// event, with all nanoseconds; `otherData` holds the origin, and how many events were dropped when
/// recording.
///
/// The file is replaced as a whole (see io::AtomicFile): whoever reads it, even after a kill at any moment,
/// sees valid JSON. When `max_bytes` don't suffice, the latest events are left out, and `otherData` says how
/// many. Counters whose value is not finite, which JSON cannot hold, are left out and counted there too.
/// Returns the number of events left out.
std::uint64_t write_chrome_trace(const std::filesystem::path& path, const Trace& trace,
                                 const ChromeTraceOptions& options = {});

/// Reads what write_chrome_trace wrote. Operators, names and tracks are those that the file's events name, in
/// the order of their first event; what was left out counts as dropped. Anything else throws Error naming the
/// file.
Trace read_chrome_trace(const std::filesystem::path& path);

}  // namespace purine::trace
