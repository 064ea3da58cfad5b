// Checkpoints: everything that a run needs to go on, in one file.
//
// A checkpoint is a safetensors file named `step-00001234.safetensors` after the iterations done. It holds
// all variables (weights, running statistics, the optimiser's state) as tensors, and in its metadata the
// manifest
// (`purine.manifest`, JSON) and a CRC-32C of manifest and tensors (`purine.checksum`). One file, so that one
// rename commits everything. Equal state gives equal bytes: no time, no host, no order of arrival is in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "purine/io/host_tensor.h"

namespace purine::io {

/// What a checkpoint says beside the tensors.
struct Manifest {
  std::int64_t iteration = 0;                ///< iterations done, which is the number of the next one
  std::int64_t epoch = 0;                    ///< the epoch that the next iteration belongs to, from 0
  std::int64_t position = 0;                 ///< samples of that epoch that are used already
  std::uint64_t seed = 0;                    ///< the run's
  std::uint64_t graph_hash = 0;              ///< of the graph whose variables these are
  std::string job;                           ///< the job file's text
  std::optional<double> score = {};          ///< larger is better: what the best checkpoint is chosen by
  std::map<std::string, std::string> extra;  ///< whatever else a run wants to find again
  std::string purine_version;                ///< build_id() of who wrote the file; set by save_checkpoint

  bool operator==(const Manifest& other) const = default;
};

struct Checkpoint {
  Manifest manifest;
  std::vector<HostTensor> tensors;
};

/// Which checkpoints of a folder stay when one is saved.
struct Retention {
  int last = 3;       ///< how many of the newest; 0 keeps all
  bool best = false;  ///< and the one with the largest score (of equals the newest), if any has one
};

struct CheckpointFile {
  std::filesystem::path path;
  std::int64_t iteration = 0;

  bool operator==(const CheckpointFile& other) const = default;
};

/// Writes a checkpoint into a folder, which is made if there is none, and removes what `retention` doesn't
/// keep and what killed writers left. The older checkpoints go only when the new one is on the disk; a
/// failure (a full disk) throws Error and leaves them all. Later iterations' files are left alone: see
/// discard_checkpoints_after. Returns the path.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention = {});

/// Reads a checkpoint and verifies its checksum. A damaged file, a plain safetensors file and one of a newer
/// format throw Error naming it.
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// Reads the manifest alone, quickly and without verifying the tensors.
Manifest load_manifest(const std::filesystem::path& path);

/// The checkpoints of a folder, oldest first, by their names; other files are ignored. A folder that doesn't
/// exist has none.
std::vector<CheckpointFile> list_checkpoints(const std::filesystem::path& folder);

/// The newest checkpoint of a folder, not opened; nothing if there is none.
std::optional<CheckpointFile> latest_checkpoint(const std::filesystem::path& folder);

struct LatestCheckpoint {
  std::filesystem::path path;
  Checkpoint checkpoint;
};

/// Reads the newest checkpoint. If it is damaged, it is refused, and never replaced silently by an older one:
/// the Error names it and, in its hint, the newest one that is whole. No checkpoint at all is an Error too.
LatestCheckpoint load_latest_checkpoint(const std::filesystem::path& folder);

/// Removes the checkpoints of later iterations than this one: a run that goes on from an older checkpoint
/// calls it, so that what it abandons is not taken for its newest state. Returns how many were removed.
std::size_t discard_checkpoints_after(const std::filesystem::path& folder, std::int64_t iteration);

}  // namespace purine::io
