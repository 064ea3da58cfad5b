#include "purine/train/run_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/program/cost_table.h"
#include "purine/session/gather_texts.h"
#include "purine/sim/cost_table.h"
#include "purine/train/parallel_section.h"

namespace purine::train {

std::optional<RunPrediction> predict_run(Runtime& runtime, const trace::RunDescription& run,
                                         const OperatorMeter& meter, const BuildJob& build,
                                         double measured_step_seconds) {
  const LoadedJob loaded = parse_job(run.job, "the run's job");
  const std::vector<Location> devices = parallel_setup(loaded).devices();
  const auto is_cpu = [](const Location& device) { return device.kind == DeviceKind::cpu; };
  if (devices.size() < 2 || !std::ranges::all_of(devices, is_cpu)) return std::nullopt;
  std::vector<sim::CostTable> costs;
  for (const std::string& text : gather_texts(runtime, meter.costs({}).text())) {
    costs.push_back(sim::CostTable::from_costs(program::CostTable::parse(text)));
  }
  if (runtime.rank() != 0) return std::nullopt;
  SimulatedJobOptions options;
  for (const sim::CostTable& of_rank : costs) {
    if (of_rank.size() == 0) return std::nullopt;
    options.simulation.costs_by_rank.push_back(&of_rank);
  }
  SimulatedJob simulated;
  try {
    simulated = simulate(loaded, build, sim::parse_cluster(run.cluster, "the run's cluster"), options);
  } catch (const Error&) {
    return std::nullopt;  // ranks of one host may need more memory together than one of them has
  }
  const double images_per_second = static_cast<double>(simulated.batch) / measured_step_seconds;
  RunPrediction prediction;
  prediction.measured_step_seconds = measured_step_seconds;
  prediction.predicted_step_seconds = simulated.result.step_seconds;
  prediction.one_device_images_per_second = *simulated.one_device_images_per_second;
  prediction.speed_up = images_per_second / prediction.one_device_images_per_second;
  prediction.efficiency = prediction.speed_up / static_cast<double>(devices.size());
  return prediction;
}

std::string prediction_text(const RunPrediction& prediction) {
  return fmt::format(
      "a step took {:.2f} ms and was predicted to take {:.2f} ms ({:+.1f}%); {:.2f} times one device "
      "with its share of the batch, efficiency {:.1f}%",
      1e3 * prediction.measured_step_seconds, 1e3 * prediction.predicted_step_seconds,
      100 * (prediction.predicted_step_seconds / prediction.measured_step_seconds - 1), prediction.speed_up,
      100 * prediction.efficiency);
}

}  // namespace purine::train
