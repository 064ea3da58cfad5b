// The trace of a run, as its job asks for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "purine/core/error.h"
#include "purine/session/runtime.h"
#include "purine/session/session.h"
#include "purine/train/job.h"
#include "purine/train/run_folder.h"
#include "purine/train/step_trace.h"

namespace purine::train {

/// Traces the steps that a job names, and writes the traces of all ranks into the run folder when those are
/// done or the run ends. Nothing depends on a trace, so a run does not end because of one that can't be
/// written.
class RunTrace {
 public:
  RunTrace(const Job& job, const Runtime& runtime);

  /// Before the run begins. A collective call.
  void compare_clocks(const Runtime& runtime) {
    if (trace_) trace_->compare_clocks(runtime);
  }
  /// What the trace tells of the run; see StepTrace::describe.
  void describe(const trace::RunDescription& run) {
    if (trace_) trace_->describe(run);
  }
  /// For the session; empty if nothing is traced.
  std::function<void(const RanEvent&)> hook();
  /// The steps after which all that is traced is done; 0 if nothing is.
  std::int64_t end() const { return trace_ ? trace_->end() : 0; }

  /// Where the run stands.
  struct Position {
    std::int64_t first_step = 0;  ///< steps done before this process
    std::int64_t step = 0;        ///< steps done
    bool is_last = false;         ///< the run ends here
  };
  /// Writes the traces if it is time to. Gives, at rank 0, what a user should know of them. A collective
  /// call.
  std::optional<std::string> write(Runtime& runtime, const RunPaths& paths, const Position& position);
  /// Writes what this rank has recorded of a run that failed, since the others can't be asked any more.
  void write_alone(const RunPaths& paths, std::int64_t first_step);

  /// Rank 0's file, once it is written.
  const std::optional<std::filesystem::path>& path() const { return path_; }
  /// Why it could not be written, where that is so.
  const std::optional<Error>& error() const { return error_; }

 private:
  Job::Trace job_;
  std::optional<StepTrace> trace_;
  bool is_done_ = false;
  std::optional<std::filesystem::path> path_;
  std::optional<Error> error_;
};

}  // namespace purine::train
