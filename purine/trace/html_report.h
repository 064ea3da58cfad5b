// A run as one page that a browser shows without a network.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "purine/trace/trace.h"
#include "purine/trace/why.h"

namespace purine::trace {

/// What a report shows besides traces. All may be empty.
struct ReportContext {
  std::string title;                           ///< of the run, for people
  std::string job;                             ///< the job file's text; empty: as the trace has it
  std::string metrics;                         ///< lines of metrics.jsonl; one that can't be read is left out
  std::optional<SimulatedRun> simulated = {};  ///< of the job and of others; see Explanation
  NetworkSpeed network = {};                   ///< that the ranks had, as far as it is known
};

/// The page: why a step takes so long, the timeline of all ranks, how transfers and computing overlap, memory
/// over time, curves of the metrics, the graph, job and machine. All of it is in the text: style, scripts and
/// data. The traces have the times of one clock.
std::string html_report(std::span<const Trace> ranks, const ReportContext& context);

}  // namespace purine::trace
