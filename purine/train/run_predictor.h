// Judges a run over several ranks by what it measures of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "purine/session/runtime.h"
#include "purine/session/session.h"
#include "purine/trace/trace.h"
#include "purine/train/operator_meter.h"
#include "purine/train/run_prediction.h"

namespace purine::train {

/// Measures the operators of a few early steps of a run, and says at its end how fast they let it be: see
/// predict_run. A run of one process is neither measured nor judged. Must outlive the session that has its
/// hook.
class RunPredictor {
 public:
  explicit RunPredictor(const Runtime& runtime);

  /// For the session; empty where nothing is measured.
  std::function<void(const RanEvent&)> hook();
  bool measures() const { return meter_.has_value(); }
  /// What the run is, and the steps done before it begins here.
  void begin(const trace::RunDescription& run, std::int64_t step);

  /// What a step of the run, which took so long, was to take. A collective call.
  std::optional<RunPrediction> predict(Runtime& runtime, const BuildJob& build, double step_seconds) const;

 private:
  std::optional<OperatorMeter> meter_;
  trace::RunDescription run_;
};

}  // namespace purine::train
