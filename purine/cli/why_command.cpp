#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/core/error.h"
#include "purine/trace/read_traces.h"
#include "purine/trace/why.h"
#include "purine/train/simulated_changes.h"

namespace purine::cli {

int why(const WhyRequest& request) {
  const std::vector<std::filesystem::path> paths(request.traces.begin(), request.traces.end());
  const std::vector<trace::Trace> traces = trace::read_traces(paths);
  const trace::Timeline timeline(traces);
  trace::Explanation explanation =
      trace::explain(timeline, trace::critical_path(timeline), {.network = train::network_of(traces)});
  if (explanation.steps == 0) {
    throw Error("trace", "holds no whole iteration", "trace a few steps").at(request.traces.front());
  }
  explanation.simulated = train::simulate_changes(traces);
  fmt::print("{}", request.json ? trace::why_json(explanation) + "\n" : trace::why_text(explanation));
  return success;
}

}  // namespace purine::cli
