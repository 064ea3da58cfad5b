#include "purine/train/scheduling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "purine/core/error.h"
#include "purine/program/estimate.h"
#include "purine/train/parallel_section.h"
#include "purine/train/placed_graph.h"

namespace purine::train {
namespace {

std::string devices_of_workers(int workers) {
  std::vector<Location> devices;
  for (int i = 0; i < workers; ++i) devices.push_back({0, DeviceKind::cpu, i});
  return devices_text(devices);
}

std::string text_of(int parts) {
  return parts == 1 ? std::string("whole operators side by side")
                    : fmt::format("operators in up to {} parts", parts);
}

/// Of a step in which each device makes for itself what kernels keep for their parts.
double kept_seconds(const Program& program) {
  double seconds = 0;
  for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
    seconds += program::estimate_bytes_seconds(static_cast<double>(program.kept_bytes(op)));
  }
  return seconds;
}

std::optional<double> predict_data_parallel(const Session& session, const Runtime& runtime,
                                            const LoadedJob& loaded, const BuildJob& build) {
  const Location cpu{0, DeviceKind::cpu, 0};
  const ParallelSetup whole = parallel_setup(loaded, runtime.ranks());
  if (whole.is_divided() || whole.devices().front() != cpu) return std::nullopt;
  constexpr int most_devices = 8;  // dividing a graph over more takes longer than whatever it tells is worth
  if (runtime.workers() > std::min<std::int64_t>(loaded.job.data.batch, most_devices)) return std::nullopt;
  LoadedJob divided = loaded;
  divided.job.parallel = {.scheme = "data", .devices = devices_of_workers(runtime.workers())};
  PlacedGraph placed(parallel_setup(divided),
                     [&](Graph& graph, Location device) { build(divided.job, graph, device); });
  FreezeOptions freeze;
  freeze.bind_kernels = false;
  const Program program(placed.running(), freeze);
  std::vector<Lane> lanes(program.lanes().size(), Lane::cpu(1));
  return predict_step_seconds(program, std::move(lanes), SessionOptions().window) +
         kept_seconds(session.program());
}

}  // namespace

Scheduling scheduling_of(const Job& job) {
  return job.train.scheduling == "side_by_side" ? Scheduling::side_by_side
         : job.train.scheduling == "divided"    ? Scheduling::divided
                                                : Scheduling::automatic;
}

SchedulingReport report_scheduling(const Session& session, const Runtime& runtime, const LoadedJob& loaded,
                                   const BuildJob& build) {
  SchedulingReport report{session.scheduling(), runtime.workers()};
  if (!report.choice.candidates.empty()) {
    report.data_parallel_seconds = predict_data_parallel(session, runtime, loaded, build);
  }
  return report;
}

std::string scheduling_text(const SchedulingReport& report) {
  if (report.workers < 2) return "";
  using Candidate = SchedulingChoice::Candidate;
  const std::vector<Candidate>& candidates = report.choice.candidates;
  std::string text = text_of(report.choice.parts);
  if (candidates.empty()) return text;
  const bool is_divided = report.choice.parts > 1;
  const Candidate* other = nullptr;  // the best way that the chosen one isn't
  double chosen_seconds = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.parts == report.choice.parts) chosen_seconds = candidate.step_seconds;
    if ((candidate.parts > 1) == is_divided) continue;
    if (other == nullptr || candidate.step_seconds < other->step_seconds) other = &candidate;
  }
  text += fmt::format("; predicted of {}: {:.2f} times as long", text_of(other->parts),
                      other->step_seconds / chosen_seconds);
  if (report.data_parallel_seconds) {
    text += fmt::format(", of the batch divided over {}: {:.2f} times", devices_of_workers(report.workers),
                        *report.data_parallel_seconds / chosen_seconds);
  }
  return text;
}

}  // namespace purine::train
