// Records what runs when, and asks the trace: does the next iteration begin before this one has ended, and
// why does a step take so long? Writes trace.json for Perfetto (ui.perfetto.dev) or chrome://tracing.
#include <fmt/core.h>
#include <purine/purine.h>

#include <string>
#include <vector>

using namespace purine;

int main() {
  Graph g;
  const auto [image, label] =
      data::synthetic(g, {.batch = 32, .image = {3, 32, 32}, .classes = 10, .fixed = false});
  const models::Network network = models::build("small_convnet", image, 10);
  optim::momentum(models::classification_loss(network, label), {.learning_rate = 0.01});

  Runtime runtime({.workers = 2});
  trace::Recorder recorder({"worker 0", "worker 1"}, {.capacity = 1 << 16});
  Session session(runtime, g, {.trace = [&](const RanEvent& event) {
                    recorder.record(event.worker, event.op, event.part, event.iteration, event.begin,
                                    event.end);
                  }});
  session.run_steps(20);

  trace::Trace trace = recorder.trace();
  trace.operators = trace::operators_of(session.program());  // with what each waits for
  trace.memory = trace::memory_of(session.program());
  int overlapping = 0;
  const std::vector<trace::IterationOverlap> overlaps = trace::iteration_overlaps(trace);
  for (const trace::IterationOverlap& overlap : overlaps) overlapping += overlap.time > 0;
  fmt::print("{} of {} iterations began before the one before them had ended\n", overlapping,
             overlaps.size());
  for (const trace::TrackUsage& usage : trace::track_usage(trace)) {
    fmt::print("{}: busy {:.0f}% of the time\n", usage.name, 100 * usage.busy_share);
  }
  const std::vector<trace::Trace> ranks = {trace};
  const trace::Timeline timeline(ranks);
  fmt::print("{}", trace::why_text(trace::explain(timeline, trace::critical_path(timeline))));
  trace::write_chrome_trace("trace.json", trace);
  return overlapping > 0 ? 0 : 1;
}
