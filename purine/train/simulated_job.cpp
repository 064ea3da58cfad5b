#include "purine/train/simulated_job.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "purine/models/models.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/parallel_section.h"
#include "purine/train/placed_graph.h"

namespace purine::train {
namespace {

PlacedGraph place(const LoadedJob& loaded, const BuildJob& build) {
  return locating_mistakes(loaded, [&] {
    return PlacedGraph(parallel_setup(loaded),
                       [&](Graph& graph, Location device) { build(loaded.job, graph, device); });
  });
}

double images_per_second(const LoadedJob& loaded, const sim::SimulationResult& result) {
  return static_cast<double>(loaded.job.data.batch) / result.step_seconds;
}

}  // namespace

SimulatedImages images_of_model(const LoadedJob& loaded) {
  const models::Model& model = models::find_model(loaded.job.model.name);
  SimulatedImages images{{model.image[0], model.image[1], model.image[2]}, model.classes};
  if (loaded.job.model.classes > 0) images.classes = loaded.job.model.classes;
  return images;
}

SimulatedImages images_of(const LoadedJob& loaded) {
  const Job& job = loaded.job;
  std::error_code error;
  if (std::filesystem::exists(job.data.folder, error)) {
    return locating_mistakes(loaded, [&] {
      const Task task = find_task(job, *open_dataset(job, data::Subset::train));
      return SimulatedImages{task.image, task.classes};
    });
  }
  SimulatedImages images = images_of_model(loaded);
  images.are_known = false;
  if (job.data.channels > 0) images.image.channels = job.data.channels;
  if (job.data.crop_size > 0) images.image.height = images.image.width = job.data.crop_size;
  return images;
}

LoadedJob on_cluster(LoadedJob loaded, const sim::Cluster& cluster, const std::string& devices,
                     const std::string& origin) {
  if (devices.empty()) return with_devices(std::move(loaded), devices_text(cluster.devices()), origin);
  const bool at_every_rank = devices.find('/') == std::string::npos;
  return with_devices(std::move(loaded), devices, origin,
                      at_every_rank ? static_cast<int>(cluster.hosts.size()) : 0);
}

BuildJob training_on(const SimulatedImages& images) {
  return [images](const Job& job, Graph& graph, Location device) {
    const data::Batch batch = data::synthetic(
        graph, {.batch = job.data.batch, .image = images.image, .classes = images.classes, .seed = 1});
    build_training(batch, job, images.classes, 1, device);
  };
}

SimulatedJob simulate(const LoadedJob& loaded, const SimulatedImages& images, const sim::Cluster& cluster,
                      const SimulatedJobOptions& options) {
  return simulate(loaded, training_on(images), cluster, options);
}

SimulatedJob simulate(const LoadedJob& loaded, const BuildJob& build, const sim::Cluster& cluster,
                      const SimulatedJobOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const ParallelSetup setup = parallel_setup(loaded);
  PlacedGraph placed = place(loaded, build);
  SimulatedJob simulated;
  simulated.divide_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  simulated.setup = setup.text();
  simulated.devices = setup.devices();
  simulated.batch = loaded.job.data.batch;
  simulated.parameters = parameter_count(placed.written());
  simulated.result =
      locating_mistakes(loaded, [&] { return sim::simulate(placed.running(), cluster, options.simulation); });
  simulated.images_per_second = images_per_second(loaded, simulated.result);
  if (!options.against_one_device) return simulated;
  if (!setup.is_divided()) {
    simulated.one_device_images_per_second = simulated.images_per_second;
    return simulated;
  }
  const auto count = static_cast<std::int64_t>(setup.devices().size());
  LoadedJob alone =
      with_devices(loaded, setup.devices().front().text(), loaded.origins.at("parallel.devices"));
  alone.job.data.batch = (loaded.job.data.batch + count - 1) / count;
  sim::SimulationOptions simulation = options.simulation;
  simulation.trace = false;
  PlacedGraph one = place(alone, build);
  simulated.one_device_images_per_second =
      images_per_second(alone, sim::simulate(one.running(), cluster, simulation));
  return simulated;
}

}  // namespace purine::train
