// The folder of a run: what lies where in it, and who writes there.
#pragma once

#include <cstdint>
#include <filesystem>

#include "purine/io/file.h"

namespace purine::train {

/// Where the files of a run lie:
///
///     job.toml                 the whole job, every key that counts
///     checkpoints/step-….safetensors
///     metrics.jsonl            see MetricsLog
///     events/events.out.…      the same for TensorBoard
///     trace.json               the traced steps; see free_trace. Over several processes those of rank 0;
///                              trace.rank1.json those of rank 1
struct RunPaths {
  std::filesystem::path folder;

  std::filesystem::path job() const { return folder / "job.toml"; }
  std::filesystem::path checkpoints() const { return folder / "checkpoints"; }
  std::filesystem::path metrics() const { return folder / "metrics.jsonl"; }
  std::filesystem::path events() const { return folder / "events"; }
  std::filesystem::path trace() const { return folder / "trace.json"; }
  /// Where a trace is written that replaces none: `trace.json`, for a run that was resumed after step 120
  /// `trace-from-step-120.json`; where that exists, `…-2.json`, `…-3.json` and so on.
  std::filesystem::path free_trace(std::int64_t resumed_step) const;
};

/// A run folder that this process writes to; no other can take it meanwhile. Errors are Error("run folder")
/// with its path.
class RunFolder {
 public:
  /// Throws the Error of `create` if there is something of this name.
  static void check_absent(const std::filesystem::path& folder);
  /// Makes the folder; one that exists is an Error, whatever is in it.
  static RunFolder create(const std::filesystem::path& folder);
  /// Makes the first of `folder`, `folder-2`, `folder-3`, … that does not exist.
  static RunFolder create_numbered(const std::filesystem::path& folder);
  /// Takes a folder that exists, to go on with its run.
  static RunFolder open(const std::filesystem::path& folder);

  const RunPaths& paths() const { return paths_; }

 private:
  explicit RunFolder(std::filesystem::path folder);

  RunPaths paths_;
  io::File lock_;  // the folder itself, locked as long as it is open
};

}  // namespace purine::train
