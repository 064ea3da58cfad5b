#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "purine/trace/analysis.h"

namespace purine::trace {
namespace {

double milliseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

}  // namespace

std::string report(const Trace& trace) {
  if (trace.events.empty()) return "The trace holds no operator.\n";
  std::string text;
  const auto line = [&text]<typename... Arguments>(fmt::format_string<Arguments...> format,
                                                   Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
    text += '\n';
  };
  const TimeUsage time = time_usage(trace);
  line("{} events of operators in {:.3f} ms; nothing ran for {:.3f} ms; {:.2f} at the same time on average",
       trace.events.size(), milliseconds(time.total), milliseconds(time.waiting), time.parallelism);
  if (trace.dropped > 0) line("{} further events found no room and are missing here", trace.dropped);

  line("\n{:<32} {:>10} {:>10} {:>12} {:>7}", "type", "executions", "events", "ms", "share");
  for (const TypeTotal& total : totals_by_type(trace)) {
    line("{:<32} {:>10} {:>10} {:>12.3f} {:>6.1f}%", total.type, total.executions, total.events,
         milliseconds(total.time), 100 * total.share);
  }
  line("\n{:<32} {:>12} {:>12} {:>7}", "track", "busy ms", "waiting ms", "busy");
  for (const TrackUsage& track : track_usage(trace)) {
    line("{:<32} {:>12.3f} {:>12.3f} {:>6.1f}%", track.name, milliseconds(track.busy),
         milliseconds(track.waiting), 100 * track.busy_share);
  }
  const std::vector<IterationOverlap> iterations = iteration_overlaps(trace);
  if (iterations.empty()) return text;
  const auto overlapping =
      std::ranges::count_if(iterations, [](const IterationOverlap& overlap) { return overlap.time > 0; });
  const IterationOverlap& most = *std::ranges::max_element(iterations, {}, &IterationOverlap::time);
  line("\n{} of {} iterations overlap the next one", overlapping, iterations.size());
  if (most.time > 0) {
    line("most: {} of iteration {} began {:.3f} ms before {} of iteration {} ended",
         trace.operators[most.next_operator].path, most.iteration + 1, milliseconds(most.time),
         trace.operators[most.last_operator].path, most.iteration);
  }
  return text;
}

}  // namespace purine::trace
