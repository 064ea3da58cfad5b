#include "purine/train/run_predictor.h"

namespace purine::train {
namespace {

constexpr std::int64_t warm_up_steps = 2;  // the first take longer
constexpr std::int64_t metered_steps = 8;

}  // namespace

RunPredictor::RunPredictor(const Runtime& runtime) {
  if (runtime.ranks() > 1) meter_.emplace(0, metered_steps, runtime);
}

std::function<void(const RanEvent&)> RunPredictor::hook() {
  return meter_ ? meter_->hook() : nullptr;
}

void RunPredictor::begin(const trace::RunDescription& run, std::int64_t step) {
  if (!meter_) return;
  run_ = run;
  meter_->set_iterations(step + warm_up_steps, step + warm_up_steps + metered_steps);
}

std::optional<RunPrediction> RunPredictor::predict(Runtime& runtime, const BuildJob& build,
                                                   double step_seconds) const {
  if (!meter_) return std::nullopt;
  return predict_run(runtime, run_, *meter_, build, step_seconds);
}

}  // namespace purine::train
