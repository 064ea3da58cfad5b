// Means over steps.
#pragma once

#include <cstdint>

#include "purine/train/checkpoints.h"
#include "purine/train/reports.h"

namespace purine::train {

/// Sums up the steps of a run, as they are done: for its epochs, for progress reports and for its end.
class StepSums {
 public:
  void add(const StepReport& step);

  /// Of the epoch that the steps are in. A run that is resumed goes on with those of its checkpoint.
  const EpochSums& epoch() const { return epoch_; }
  void set_epoch(const EpochSums& sums) { epoch_ = sums; }
  /// The means of an epoch that is over; the sums stay until they are set anew.
  EpochReport finish_epoch(std::int64_t step, std::int64_t epoch);
  /// The means since the last one; `steps` are those of the whole run.
  ProgressReport take_progress(const StepReport& last, std::int64_t steps);

  double training_seconds() const { return training_seconds_; }
  std::int64_t trained_images() const { return trained_images_; }

 private:
  struct Interval {
    double loss = 0;
    double correct = 0;
    double samples = 0;
    double seconds = 0;
    double wait_seconds = 0;
    double steps = 0;
  };

  EpochSums epoch_;
  double epoch_seconds_ = 0;
  double training_seconds_ = 0;
  std::int64_t trained_images_ = 0;
  Interval interval_;
};

}  // namespace purine::train
