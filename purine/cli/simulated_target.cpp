#include "purine/cli/simulated_target.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/job_target.h"
#include "purine/core/error.h"
#include "purine/models/models.h"

namespace purine::cli {
namespace {

bool is_model(const std::string& target) {
  std::error_code error;
  return !target.ends_with(".toml") && !std::filesystem::exists(target, error);
}

train::LoadedJob load(const TargetRequest& request) {
  std::vector<train::JobSetting> settings = request.settings;
  if (request.batch > 0) {
    const std::string batch = std::to_string(request.batch);
    settings.push_back({"data.batch=" + batch, "--batch " + batch});
  }
  RunRequest run = request.run;
  run.devices.clear();  // the cluster's take their place
  settings = with_parallel_options(std::move(settings), run);
  if (!is_model(request.target)) return load_job(request.target, settings, {});
  try {
    return model_job(request.target, settings);
  } catch (const Error& error) {
    if (error.component() == "job") throw;
    throw Error("command", error.message(), error.hint()).at(request.command);
  }
}

}  // namespace

std::vector<std::filesystem::path> files_of(const TargetRequest& request) {
  std::vector<std::filesystem::path> files = {request.target, request.cluster};
  if (request.costs) files.emplace_back(*request.costs);
  return files;
}

SimulatedTarget load_simulated_target(const TargetRequest& request) {
  SimulatedTarget target{
      .cluster = sim::read_cluster(request.cluster), .loaded = load(request), .images = {}};
  if (request.costs) target.costs = sim::CostTable::read(*request.costs);
  const std::string& devices = request.run.devices;
  target.loaded =
      train::on_cluster(std::move(target.loaded), target.cluster, devices,
                        devices.empty() ? "--cluster " + request.cluster : "--devices " + devices);
  target.images =
      is_model(request.target) ? train::images_of_model(target.loaded) : train::images_of(target.loaded);
  return target;
}

}  // namespace purine::cli
