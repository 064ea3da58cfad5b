#include "purine/cli/job_target.h"

#include <fmt/format.h>

#include <filesystem>

#include "purine/core/error.h"
#include "purine/models/models.h"
#include "purine/train/parallel_section.h"
#include "purine/train/run_folder.h"

namespace purine::cli {

train::LoadedJob load_job(const std::string& target, std::span<const train::JobSetting> settings,
                          const std::optional<std::string>& run_folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_run = fs::is_directory(target, error);
  const fs::path file = is_run ? train::RunPaths{target}.job() : fs::path(target);
  if (is_run && !fs::exists(file, error)) {
    throw Error("run folder", "holds no job.toml, so it is not a run's").at(target);
  }
  train::LoadedJob loaded = train::read_job(file, settings);
  std::string& folder = loaded.job.train.run_folder;
  if (run_folder) {
    folder = *run_folder;
  } else if (is_run) {
    folder = target;  // it may have been moved since it was written
  } else if (folder.empty()) {
    folder = (fs::path("runs") / file.stem()).string();
  }
  return loaded;
}

train::LoadedJob model_job(std::string_view model, std::span<const train::JobSetting> settings) {
  const std::string text =
      fmt::format("[model]\nname = \"{}\"\n[data]\nfolder = \"none\"\n", models::find_model(model).name);
  return train::parse_job(text, model, settings);
}

std::vector<train::JobSetting> with_parallel_options(std::vector<train::JobSetting> settings,
                                                     const RunRequest& run) {
  const auto add = [&](std::string_view key, std::string_view option, const std::string& value) {
    if (value.empty()) return;
    settings.push_back({fmt::format("parallel.{}={}", key, value), fmt::format("--{} {}", option, value)});
  };
  add("devices", "devices", run.devices);
  add("scheme", "scheme", run.scheme);
  add("mesh", "mesh", run.mesh);
  return settings;
}

Attempt::Attempt(const std::function<train::LoadedJob()>& load) {
  try {
    loaded_ = load();
  } catch (const std::exception&) {
    error_ = std::current_exception();
  }
}

double Attempt::stall_limit() const {
  return loaded_ ? loaded_->job.parallel.stall_limit : train::Job().parallel.stall_limit;
}

const train::LoadedJob& Attempt::get() const {
  if (error_) std::rethrow_exception(error_);
  return *loaded_;
}

std::unique_ptr<Runtime> make_runtime(const train::LoadedJob& loaded, const RunRequest& run,
                                      const Process& process) {
  RuntimeOptions options;
  options.endpoint = process.endpoint;
  options.network_bytes_per_second = process.network_bytes_per_second;
  options.workers = run.workers > 0 ? run.workers : static_cast<int>(loaded.job.train.workers);
  using Convolutions = RuntimeOptions::Convolutions;
  const std::string& convolutions = loaded.job.train.convolutions;
  options.convolutions = convolutions == "direct"     ? Convolutions::direct
                         : convolutions == "measured" ? Convolutions::measured
                                                      : Convolutions::fastest;
  const train::Job::Emulated& emulated = loaded.job.emulated;
  options.emulated = {.memory = static_cast<std::size_t>(emulated.memory_gib * (std::size_t{1} << 30U)),
                      .copy_bytes_per_second = emulated.copy_gb_per_s * 1e9,
                      .copy_latency_seconds = emulated.copy_us * 1e-6};
  if (options.workers == 0) options.workers = process.cores;
  options.devices =
      train::parallel_setup(loaded, process.endpoint != nullptr ? process.endpoint->size() : 1).devices();
  try {
    return std::make_unique<Runtime>(options);
  } catch (const Error& error) {
    const auto origin = loaded.origins.find("parallel.devices");
    if (origin == loaded.origins.end()) throw;
    throw Error("job", error.message(), error.hint()).at(origin->second);
  }
}

}  // namespace purine::cli
