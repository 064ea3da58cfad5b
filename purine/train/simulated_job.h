// A job's training on a cluster that doesn't have to be there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/graph/graph.h"
#include "purine/sim/cluster.h"
#include "purine/sim/simulation.h"
#include "purine/train/job_file.h"

namespace purine::train {

/// What a network is trained on, as far as its speed depends on it.
struct SimulatedImages {
  data::ImageSize image;
  std::int64_t classes = 0;
  bool are_known = true;  ///< false: the data set isn't here, and they are those that the model is made for
};
/// Those of a job: of its data set, if that is here.
SimulatedImages images_of(const LoadedJob& loaded);
/// Those that a job's model is made for.
SimulatedImages images_of_model(const LoadedJob& loaded);

struct SimulatedJobOptions {
  sim::SimulationOptions simulation = {};
  /// Simulate one device with its share of the batch too.
  bool against_one_device = true;
};

struct SimulatedJob {
  std::string setup;  ///< `data parallelism over sim:0-7 at each of 2 ranks (data=16)`
  std::vector<Location> devices;
  std::int64_t batch = 0;
  std::int64_t parameters = 0;
  sim::SimulationResult result;
  double images_per_second = 0;
  /// Of the first device alone, with a batch that is its share.
  std::optional<double> one_device_images_per_second = {};
  double divide_seconds = 0;  ///< of real time, to build the network and divide it

  /// How many times as fast as one device it is.
  std::optional<double> speed_up() const {
    if (!one_device_images_per_second) return std::nullopt;
    return images_per_second / *one_device_images_per_second;
  }
};

/// The job with the cluster's devices in place of its own: all of them, unless `devices` names some as
/// parallel.devices does. Throws Error("job", …) where they don't go with the rest of [parallel].
LoadedJob on_cluster(LoadedJob loaded, const sim::Cluster& cluster, const std::string& devices,
                     const std::string& origin);

/// Adds to a graph, on one device, all that a job computes.
using BuildJob = std::function<void(const Job& job, Graph& graph, Location device)>;
/// Its training on such images, which come from memory.
BuildJob training_on(const SimulatedImages& images);

/// Builds the job's network, loss, gradients and updates, divides them as [parallel] says, and simulates the
/// steps. Images come from memory: decoding them costs nothing.
SimulatedJob simulate(const LoadedJob& loaded, const SimulatedImages& images, const sim::Cluster& cluster,
                      const SimulatedJobOptions& options = {});
/// The same of whatever `build` makes of the job.
SimulatedJob simulate(const LoadedJob& loaded, const BuildJob& build, const sim::Cluster& cluster,
                      const SimulatedJobOptions& options = {});

}  // namespace purine::train
