// What the simulator says of a run that has been made.
#pragma once

#include <optional>

#include "purine/session/runtime.h"
#include "purine/trace/trace.h"
#include "purine/train/operator_meter.h"
#include "purine/train/simulated_job.h"

namespace purine::train {

/// A run's speed beside what its own operators and its network allow.
struct RunPrediction {
  double measured_step_seconds = 0;
  /// Of the dispatchers in virtual time, with the operators' costs and the links as this run measured them.
  double predicted_step_seconds = 0;
  /// Of the first device alone with its share of the batch, simulated with the same costs.
  double one_device_images_per_second = 0;
  /// How many times as fast as that the run was.
  double speed_up = 0;
  /// This, by the number of devices: the share of what they would do each alone.
  double efficiency = 0;
};

/// Predicts a run, of which each rank gives what its operators took: simulates the job as it was described,
/// and one device alone. `build` makes what the run computes. At rank 0; nothing at the others, where one
/// device ran alone, where not all devices are CPUs, and where it can't be simulated or nothing was measured.
/// A collective call.
std::optional<RunPrediction> predict_run(Runtime& runtime, const trace::RunDescription& run,
                                         const OperatorMeter& meter, const BuildJob& build,
                                         double measured_step_seconds);

/// For people: `a step took 14.10 ms and was predicted to take 12.30 ms (-12.8%); 1.71 times one device with
/// its share of the batch, efficiency 85.5%`.
std::string prediction_text(const RunPrediction& prediction);

}  // namespace purine::train
