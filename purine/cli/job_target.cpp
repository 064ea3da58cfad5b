#include "purine/cli/job_target.h"

#include <filesystem>

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

}  // namespace purine::cli
