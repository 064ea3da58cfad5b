// What a command line asks to be simulated.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "purine/cli/requests.h"
#include "purine/sim/cluster.h"
#include "purine/sim/cost_table.h"
#include "purine/train/simulated_job.h"

namespace purine::cli {

/// A job or a model on a cluster, with what operators take if that was measured.
struct SimulatedTarget {
  sim::Cluster cluster;
  std::optional<sim::CostTable> costs = {};
  train::LoadedJob loaded;
  train::SimulatedImages images;
};

/// Throws Error for a target that is neither a job file nor a model, and for whatever is wrong in the files.
SimulatedTarget load_simulated_target(const TargetRequest& request);

/// The files that it reads, and perhaps a model's name.
std::vector<std::filesystem::path> files_of(const TargetRequest& request);

}  // namespace purine::cli
