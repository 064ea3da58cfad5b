// What is said of how a run's workers share the operators.
#pragma once

#include <optional>
#include <string>

#include "purine/session/session.h"
#include "purine/train/simulated_job.h"

namespace purine::train {

/// As a job's `train.scheduling` says.
Scheduling scheduling_of(const Job& job);

/// How a session's workers share its operators, and what else was thought of.
struct SchedulingReport {
  SchedulingChoice choice = {};
  int workers = 0;
  /// Seconds of a step if each worker were a device of its own, with its share of the batch: predicted as the
  /// candidates of the choice are, but never chosen, since sums over the batch are then made in another order
  /// for each number of workers. Nothing where nothing was predicted, for a job of several devices, and for
  /// more than 8 workers.
  std::optional<double> data_parallel_seconds = {};
};

/// Of the session of a job's graph, which `build` makes.
SchedulingReport report_scheduling(const Session& session, const Runtime& runtime, const LoadedJob& loaded,
                                   const BuildJob& build);

/// For people: `operators in up to 8 parts; predicted of whole operators side by side: 1.12 times as long, of
/// the batch divided over cpu:0-1: 1.05 times`. Empty for one worker, which has nothing to choose.
std::string scheduling_text(const SchedulingReport& report);

}  // namespace purine::train
