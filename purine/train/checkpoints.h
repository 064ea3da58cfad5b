// What a training run saves besides its variables, and finds again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "purine/io/checkpoint.h"
#include "purine/train/graph_identity.h"
#include "purine/train/job_file.h"
#include "purine/train/network.h"
#include "purine/train/reports.h"

namespace purine::train {

/// Sums over the steps of an epoch, each weighed by its samples. They are part of a checkpoint, to the bit,
/// so that an epoch's means are the same when the run was resumed within it.
struct EpochSums {
  double loss = 0;
  double correct = 0;
  std::int64_t samples = 0;

  bool operator==(const EpochSums& other) const = default;
};

/// The manifest of a run's checkpoint, without position and evaluation.
io::Manifest make_manifest(const Job& job, const Task& task, const EpochSums& sums,
                           std::uint64_t data_fingerprint, const GraphIdentity& graph);
/// Adds what the network reached on the test set: the accuracy is the checkpoint's score.
void set_evaluation(io::Manifest& manifest, const EvaluationReport& report);

/// What the network of a checkpoint is for.
Task task_of(const io::Manifest& manifest, const std::filesystem::path& path);
EpochSums epoch_sums_of(const io::Manifest& manifest, const std::filesystem::path& path);
/// What set_evaluation added, without its seconds; nothing if the network was not evaluated at that step.
std::optional<EvaluationReport> evaluation_of(const io::Manifest& manifest,
                                              const std::filesystem::path& path);

/// Throws Error where a run can't go on exactly with this job, data set and graph, and says what differs. On
/// which devices it ran does not matter.
void check_resumable(const io::Manifest& manifest, const std::filesystem::path& path, const LoadedJob& job,
                     std::uint64_t data_fingerprint, const GraphIdentity& graph);

/// Throws Error where a checkpoint is of another network than the job names.
void check_network(const io::Manifest& manifest, const std::filesystem::path& path, const Job& job);

/// The checkpoint that a user means: the given file or, without one, the newest of the run folder. Throws
/// Error if there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_folder,
                                      const std::optional<std::filesystem::path>& file);

}  // namespace purine::train
