// Job files: TOML, read with every key checked, and written back.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "purine/core/error.h"
#include "purine/train/job.h"

namespace purine::train {

/// A key that is set beside the job file: `optimizer.learning_rate=0.1`.
struct JobSetting {
  std::string assignment;
  std::string origin;  ///< what messages say instead of file and line: `--set optimizer.learning_rate=0.1`
};

/// A job that was read, and where its keys were set.
struct LoadedJob {
  Job job;
  std::string name;  ///< the file, as messages show it
  /// `data.batch` -> `job.toml:12`, or the origin of a setting; keys that have their default are not in it.
  std::map<std::string, std::string, std::less<>> origins = {};

  /// An error about a key, at the place that set it: `[job] job.toml:12: data.batch must be at least 1, got
  /// 0`.
  Error error(std::string_view key, std::string_view message, std::string_view hint = {}) const;
};

/// Reads a job from TOML text; `settings` count after it. Everything is checked before it returns: unknown
/// sections and keys (with the nearest one that exists), types, ranges and choices, what is missing, and what
/// does not go together, or means nothing because of another key. Throws Error("job", …) whose path is file
/// and line of the first mistake.
///
/// The value of a setting is TOML too, but text needs no quotes and a list no brackets. Where it sets a key
/// that others of the file depend on (`optimizer.name`), those that then mean nothing are left out.
LoadedJob parse_job(std::string_view text, std::string_view name, std::span<const JobSetting> settings = {});
/// The same from a file.
LoadedJob read_job(const std::filesystem::path& path, std::span<const JobSetting> settings = {});

/// The whole job as a job file, every key that counts with its value.
std::string job_text(const Job& job);
/// The keys alone that decide the results: equal for two runs that compute the same, wherever they write and
/// however many workers they have.
std::string job_identity(const Job& job);

/// Throws Error("job", …) naming the first key that decides the results and is not as it was in the run that
/// `started` began and `resumed` is to go on with.
void check_resumable(const Job& started, const LoadedJob& resumed);

}  // namespace purine::train
