// The job that a command line means.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "purine/cli/requests.h"
#include "purine/train/job_file.h"

namespace purine::cli {

/// A job from its file, or from a run folder, which holds it. Its run folder is filled in: as given, else as
/// the job says, else `runs/NAME` for the file `NAME.toml`.
train::LoadedJob load_job(const std::string& target, std::span<const train::JobSetting> settings,
                          const std::optional<std::string>& run_folder);

}  // namespace purine::cli
