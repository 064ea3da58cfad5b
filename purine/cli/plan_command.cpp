#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/json_object.h"
#include "purine/cli/output_path.h"
#include "purine/cli/progress_line.h"
#include "purine/cli/simulated_target.h"
#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/io/atomic_file.h"
#include "purine/train/planner.h"
#include "purine/train/progress.h"

namespace purine::cli {
namespace {

void print_json(const std::vector<train::PlannedRun>& runs, const SimulatedTarget& target) {
  std::vector<JsonObject> objects;
  for (const train::PlannedRun& run : runs) {
    JsonObject object;
    object.add("plan", run.text).add("scheme", run.parallel.scheme).add("devices", run.parallel.devices);
    if (run.obstacle.empty()) {
      object.add("step_seconds", run.step_seconds)
          .add("images_per_s", run.images_per_second)
          .add("peak_bytes", run.peak_bytes)
          .add("bytes_sent", run.bytes_sent)
          .add("section", train::parallel_section_text(run.parallel));
    } else {
      object.add("obstacle", run.obstacle);
    }
    objects.push_back(std::move(object));
  }
  print_line(JsonObject()
                 .add("cluster", target.cluster.name)
                 .add("batch", target.loaded.job.data.batch)
                 .add("plans", std::span<const JsonObject>(objects)));
}

// As two ways to sum gradients that are one where devices are few.
bool come_to_the_same(const train::PlannedRun& a, const train::PlannedRun& b) {
  return a.step_seconds == b.step_seconds && a.peak_bytes == b.peak_bytes && a.bytes_sent == b.bytes_sent;
}

// The fastest, of those that come to the same one, and plain data parallelism to compare them with.
std::vector<train::PlannedRun> best_of(const std::vector<train::PlannedRun>& runs, std::size_t most) {
  std::vector<train::PlannedRun> best;
  bool has_plain = false;
  for (const train::PlannedRun& run : runs) {
    if (!run.obstacle.empty()) break;
    const bool is_best = best.size() < most && (best.empty() || !come_to_the_same(best.back(), run));
    const bool is_first_plain = run.is_plain && !has_plain;
    if (is_best || is_first_plain) best.push_back(run);
    has_plain = has_plain || run.is_plain;
  }
  return best;
}

void print_text(const PlanRequest& request, const std::vector<train::PlannedRun>& runs) {
  fmt::print("{:>12} {:>12} {:>12} {:>14}  {}\n", "images/s", "step ms", "memory", "sent in a step", "plan");
  for (const train::PlannedRun& run : best_of(runs, static_cast<std::size_t>(request.top))) {
    fmt::print("{:>12.2f} {:>12.3f} {:>12} {:>14}  {}\n", run.images_per_second, run.step_seconds * 1e3,
               bytes_text(run.peak_bytes), bytes_text(run.bytes_sent), run.text);
  }
  const auto impossible =
      std::count_if(runs.begin(), runs.end(), [](const auto& run) { return !run.obstacle.empty(); });
  fmt::print("\n{} plans were simulated; {} more can't be\n",
             runs.size() - static_cast<std::size_t>(impossible), impossible);
  for (const train::PlannedRun& run : runs) {
    if (request.all && !run.obstacle.empty()) fmt::print("  {}: {}\n", run.text, run.obstacle);
  }
  fmt::print("\n{}", train::parallel_section_text(runs.front().parallel));
}

std::vector<train::PlannedRun> search(const SimulatedTarget& target, train::PlanOptions options) {
  ProgressLine line;
  int tried = 0;
  options.tried = [&](const train::PlannedRun& run) {
    line.show(fmt::format("{} plans: {}", ++tried, run.text));
  };
  return train::plan(target.loaded, target.images, target.cluster, options);
}

}  // namespace

int plan(const PlanRequest& request) {
  if (request.output) {
    check_outputs("purine plan", std::array{Output{"--output", *request.output}}, files_of(request.target));
  }
  const SimulatedTarget target = load_simulated_target(request.target);
  train::PlanOptions options;
  options.simulation.costs = target.costs ? &*target.costs : nullptr;
  options.simulation.workers = request.target.run.workers;
  const std::vector<train::PlannedRun> runs = search(target, options);
  if (!runs.front().obstacle.empty()) {
    throw Error("plan", "there is none: " + runs.front().obstacle,
                "use a smaller batch, or a larger cluster");
  }
  if (request.json) {
    print_json(runs, target);
  } else {
    print_text(request, runs);
  }
  if (request.output) io::write_file(*request.output, train::parallel_section_text(runs.front().parallel));
  return success;
}

}  // namespace purine::cli
