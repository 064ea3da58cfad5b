// The job that a command line means.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/cli/requests.h"
#include "purine/session/runtime.h"
#include "purine/train/job_file.h"

namespace purine::cli {

/// A job from its file, or from a run folder, which holds it. Its run folder is filled in: as given, else as
/// the job says, else `runs/NAME` for the file `NAME.toml`.
train::LoadedJob load_job(const std::string& target, std::span<const train::JobSetting> settings,
                          const std::optional<std::string>& run_folder);
/// A job of nothing but a model, for commands that take a model's name; an unknown name is an Error.
train::LoadedJob model_job(std::string_view model, std::span<const train::JobSetting> settings);
/// The settings, and the options for devices as settings of [parallel].
std::vector<train::JobSetting> with_parallel_options(std::vector<train::JobSetting> settings,
                                                     const RunRequest& run);
/// What this process has of its own among those of a run.
struct Process {
  Endpoint* endpoint = nullptr;  ///< null if it is the only one
  int cores = 0;                 ///< for it alone; 0: those that there are
  /// What it sends to others; see RuntimeOptions.
  double network_bytes_per_second = RuntimeOptions().network_bytes_per_second;
};
/// The runtime with a job's devices; one that is not here is an Error at the place that names it. Workers are
/// as the request says, or else the job, or one for each core.
std::unique_ptr<Runtime> make_runtime(const train::LoadedJob& loaded, const RunRequest& run,
                                      const Process& process = {});

/// A job that could be loaded or not: every process needs to know of the others before it may give up.
class Attempt {
 public:
  explicit Attempt(const std::function<train::LoadedJob()>& load);
  /// How long processes wait for each other: as the job says, or by default if there is none.
  double stall_limit() const;
  /// The job. Throws what loading it threw.
  const train::LoadedJob& get() const;

 private:
  std::optional<train::LoadedJob> loaded_;
  std::exception_ptr error_;
};

}  // namespace purine::cli
