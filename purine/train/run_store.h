// Where a run is kept: its folder, and the checkpoints in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "purine/parallel/whole_variable.h"
#include "purine/session/runtime.h"
#include "purine/session/variables.h"
#include "purine/train/checkpoints.h"
#include "purine/train/graph_identity.h"
#include "purine/train/job_file.h"
#include "purine/train/network.h"
#include "purine/train/reports.h"
#include "purine/train/run_folder.h"

namespace purine::train {

/// Where a run stands after a step.
struct RunState {
  std::int64_t step = 0;                            ///< steps done
  EpochSums sums = {};                              ///< of its epoch; at rank 0
  std::optional<EvaluationReport> evaluation = {};  ///< the last one; elsewhere than at rank 0 just its step

  bool is_evaluated() const { return evaluation && evaluation->step == step; }
};

/// The run folder of a job. Rank 0 alone reads and writes there, so that the others need no part of its file
/// system: it sends them what it reads, and they send it what it saves. All ranks make the same calls.
class RunStore {
 public:
  /// What its checkpoints are of.
  struct Subject {
    Task task;
    std::uint64_t data_fingerprint = 0;
    GraphIdentity graph;
    std::vector<parallel::WholeVariable> variables;
    std::int64_t steps_per_epoch = 1;
  };
  /// What to do with the folder that the job names.
  enum class Folder : std::uint8_t { make, make_numbered, open };

  /// All must outlive it. Takes the folder; throws what RunFolder does.
  RunStore(Runtime& runtime, const LoadedJob& loaded, Subject subject, Folder folder);

  const RunPaths& paths() const { return paths_; }
  /// Loads the newest checkpoint; nothing if there is none. Throws Error where the run can't go on with it.
  std::optional<RunState> load(Variables& values);
  /// Saves a checkpoint, unless the newest one is the same. True if it did.
  bool save(const RunState& state, const Variables& values);
  /// The newest one's file; empty if there is none.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }

 private:
  RunState read(std::vector<io::HostTensor>& tensors);

  Runtime& runtime_;
  const LoadedJob& loaded_;
  const Subject subject_;
  std::optional<RunFolder> folder_;
  RunPaths paths_;
  std::filesystem::path checkpoint_;
  std::int64_t saved_step_ = -1;
  bool saved_evaluation_ = false;  // in the checkpoint of that step
};

}  // namespace purine::train
