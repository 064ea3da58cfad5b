#include "purine/train/simulated_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/sim/cost_table.h"
#include "purine/train/parallel_section.h"
#include "purine/train/schemes.h"
#include "purine/train/simulated_job.h"

namespace purine::train {
namespace {

class Simulator {
 public:
  Simulator(const trace::RunDescription& run, std::span<const trace::Trace> ranks)
      : loaded_(parse_job(run.job, "the trace's job")),
        images_{{run.image[0], run.image[1], run.image[2]}, run.classes},
        cluster_(sim::parse_cluster(run.cluster, "the trace's cluster")) {
    for (const trace::Trace& rank : ranks) costs_.push_back(sim::CostTable::from_trace(rank));
    for (const sim::CostTable& costs : costs_) options_.simulation.costs_by_rank.push_back(&costs);
    options_.against_one_device = false;
  }

  bool is_possible() const {
    const std::vector<Location> devices = parallel_setup(loaded_).devices();
    return std::ranges::all_of(devices, [&](const Location& device) {
      return cluster_.has(device) && static_cast<std::size_t>(device.rank) < costs_.size();
    });
  }

  trace::SimulatedRun run() const {
    trace::SimulatedRun result{simulate("nothing changed", loaded_), {}};
    const auto add = [&](const std::string& what, const LoadedJob& job) {
      try {
        result.changes.push_back(simulate(what, job));
      } catch (const Error&) {
        return;  // it can't be
      }
    };
    LoadedJob larger = loaded_;
    larger.job.data.batch *= 2;
    add(fmt::format("a batch of {}, twice as large", larger.job.data.batch), larger);
    const ParallelSetup setup = parallel_setup(loaded_);
    if (!setup.is_divided()) return result;
    for (const Scheme& scheme : all_schemes()) {
      if (scheme.name == setup.scheme->name || scheme.divide == nullptr) continue;
      add(fmt::format("the scheme {}", scheme.name), in_scheme(scheme));
    }
    return result;
  }

 private:
  // All else of [parallel] is as by default: it was chosen for the scheme that ran.
  LoadedJob in_scheme(const Scheme& scheme) const {
    LoadedJob job = loaded_;
    job.job.parallel = {.scheme = std::string(scheme.name), .devices = loaded_.job.parallel.devices};
    return job;
  }

  trace::SimulatedChange simulate(const std::string& what, const LoadedJob& job) const {
    const SimulatedJob simulated = train::simulate(job, images_, cluster_, options_);
    return {what, simulated.result.step_seconds, simulated.images_per_second};
  }

  LoadedJob loaded_;
  SimulatedImages images_;
  sim::Cluster cluster_;
  std::vector<sim::CostTable> costs_;
  SimulatedJobOptions options_;
};

// The trace that says what the run was.
auto described(std::span<const trace::Trace> ranks) {
  return std::ranges::find_if(ranks, [](const trace::Trace& rank) { return rank.run.has_value(); });
}

}  // namespace

std::optional<trace::SimulatedRun> simulate_changes(std::span<const trace::Trace> ranks) {
  const auto first = described(ranks);
  if (first == ranks.end()) return std::nullopt;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank != static_cast<std::int32_t>(i)) return std::nullopt;  // not all are here
  }
  const Simulator simulator(*first->run, ranks);
  if (!simulator.is_possible()) return std::nullopt;
  try {
    return simulator.run();
  } catch (const Error&) {
    return std::nullopt;  // ranks of one host may need more memory together than one of them has
  }
}

trace::NetworkSpeed network_of(std::span<const trace::Trace> ranks) {
  const auto first = described(ranks);
  if (first == ranks.end()) return {};
  return sim::network_speed(sim::parse_cluster(first->run->cluster, "the trace's cluster"));
}

}  // namespace purine::train
