// Which scheme trains a job the fastest on a cluster.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "purine/sim/cluster.h"
#include "purine/train/job_file.h"
#include "purine/train/simulated_job.h"

namespace purine::train {

/// A way to divide a job over a cluster, and what the simulator says of it.
struct PlannedRun {
  Job::Parallel parallel;  ///< the section [parallel]
  std::string text;        ///< for people: `hybrid over sim:0-7 (data=8), all_reduce = ring`
  bool is_plain = false;   ///< data parallelism with all else as by default
  double step_seconds = 0;
  double images_per_second = 0;
  std::size_t peak_bytes = 0;   ///< of the device that needs the most
  std::int64_t bytes_sent = 0;  ///< between hosts, in a step
  std::string obstacle = {};    ///< why it can't be, else empty
};

struct PlanOptions {
  sim::SimulationOptions simulation = {.warm_up = 1, .steps = 3};
  /// Told of each run once it was simulated.
  std::function<void(const PlannedRun&)> tried = {};
};

/// Simulates the job in every way that its cluster allows, and returns them with the fastest first, then
/// those that can't be. The batch is the job's in all of them.
///
/// Tried are the fastest device, its host, and all devices; on several, all schemes: data parallelism with
/// each way to sum gradients and both places of the update, a sharded update, tensor parallelism and the
/// hybrid, on a line and on grids that have some of a host's devices or some hosts as one axis, and pipelines
/// of all devices or of such groups, with 1, 2 and 4 micro-batches a stage. Where devices differ, the batch
/// is also divided by their speeds, and so is the work of a pipeline's stages.
///
/// From the best of each kind the search goes on to whatever is better nearby, as long as anything is: other
/// sizes of buckets and ways to sum gradients; of the hybrid, layers that are divided in other ways or not;
/// of a pipeline, stages with somewhat more or less of the work. Kinds that are far behind the best are left
/// as they are.
///
/// Plain data parallelism is among all these, so the first is never slower than that.
std::vector<PlannedRun> plan(const LoadedJob& loaded, const SimulatedImages& images,
                             const sim::Cluster& cluster, const PlanOptions& options = {});

/// A plan's section as a job file has it: `[parallel]`, and the keys that are not as by default.
std::string parallel_section_text(const Job::Parallel& parallel);

}  // namespace purine::train
