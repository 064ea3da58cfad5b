#include "purine/session/scheduling.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "purine/core/error.h"
#include "purine/program/estimate.h"
#include "purine/sim/virtual_time.h"

namespace purine {
namespace {

/// Workers that are busy for as long as a part is estimated to take.
class EstimatedWorkers final : public Executor, private sim::TimedAction {
 public:
  EstimatedWorkers(const Program& program, sim::VirtualTime& time, std::size_t workers)
      : program_(program), time_(time), works_(program.operator_count()), workers_(workers) {
    for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
      if (program.is_view(op)) continue;
      Work& work = works_[op];
      work.start = program::start_seconds;
      work.in_parts = program::estimate_seconds(program.cost(op)) - program::start_seconds;
      work.kept = program::estimate_bytes_seconds(static_cast<double>(program.kept_bytes(op)));
    }
  }

  int parts(std::uint32_t op) const override { return program_.parts(op); }
  void begin(std::uint32_t op, std::int64_t iteration, int part, int index, CompletionListener& listener,
             std::uint64_t tag) override {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    const Work& work = works_[op];
    const Program::PartRange range = program_.kernel_parts(op, part);
    double seconds = work.start + work.in_parts * (range.end - range.begin) / program_.kernel_parts(op);
    if (worker.op != op || worker.iteration != iteration) seconds += work.kept;
    worker = {op, iteration, &listener, tag};
    time_.schedule(time_.now() + sim::nanoseconds(seconds), *this, static_cast<std::uint64_t>(index));
  }

 private:
  struct Work {
    double start = 0;
    double in_parts = 0;
    double kept = 0;
  };
  struct Worker {
    std::uint32_t op = 0;
    std::int64_t iteration = -1;
    CompletionListener* listener = nullptr;
    std::uint64_t tag = 0;
  };

  void act(std::uint64_t index) override {
    const Worker worker = workers_[index];
    worker.listener->completed(worker.tag, nullptr);
  }

  const Program& program_;
  sim::VirtualTime& time_;
  std::vector<Work> works_;  // by operator
  std::vector<Worker> workers_;
};

int most_kernel_parts(const Program& program) {
  int most = 1;
  for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
    most = std::max(most, program.kernel_parts(op));
  }
  return most;
}

/// Of the candidates of at least so many parts, the finest of those that are as good as the best one: parts
/// also even out what estimates don't know.
int best_parts(const std::vector<SchedulingChoice::Candidate>& candidates, int least_parts) {
  constexpr double as_good = 1.005;
  double least_seconds = std::numeric_limits<double>::infinity();
  for (const SchedulingChoice::Candidate& candidate : candidates) {
    if (candidate.parts >= least_parts) least_seconds = std::min(least_seconds, candidate.step_seconds);
  }
  int best = least_parts;
  for (const SchedulingChoice::Candidate& candidate : candidates) {
    const bool is_allowed = candidate.parts >= least_parts;
    if (is_allowed && candidate.step_seconds <= as_good * least_seconds) best = candidate.parts;
  }
  return best;
}

}  // namespace

std::optional<std::vector<Lane>> cpu_lanes(const Program& program, const Runtime& runtime) {
  std::vector<Lane> lanes;
  for (const LaneUse& use : program.lanes()) {
    if (use.kind == LaneKind::network || use.location.kind != DeviceKind::cpu) return std::nullopt;
    lanes.push_back(Lane::cpu(runtime.workers_of(use.location)));
  }
  return lanes;
}

double predict_step_seconds(const Program& program, std::vector<Lane> lanes, int window) {
  constexpr std::int64_t warm_up = 2;  // iterations that find fewer before them than later ones do
  constexpr std::int64_t counted = 4;
  sim::VirtualTime time;
  std::size_t workers = 0;
  for (const Lane& lane : lanes) workers += static_cast<std::size_t>(lane.workers);
  EstimatedWorkers executor(program, time, workers);
  Dispatcher dispatcher(program.marked_graph(), executor, std::move(lanes),
                        {.window = window, .clock = &time, .threads = false});
  dispatcher.admit(warm_up + counted + 1);  // one more, that the last one has company
  dispatcher.issue_ready();
  const auto when_finished = [&](std::int64_t iterations) {
    while (dispatcher.finished() < iterations) {
      PURINE_CHECK(time.advance());
      dispatcher.issue_ready();
    }
    return static_cast<double>(time.now()) * 1e-9;
  };
  const double first = when_finished(warm_up);
  return (when_finished(warm_up + counted) - first) / counted;
}

SchedulingChoice choose_scheduling(Program& program, const Runtime& runtime, Scheduling scheduling,
                                   int window) {
  const int most = most_kernel_parts(program);
  const std::optional<std::vector<Lane>> lanes = cpu_lanes(program, runtime);
  SchedulingChoice choice;
  choice.parts = scheduling == Scheduling::side_by_side ? 1 : most;
  if (lanes && runtime.workers() > 1 && most > 1) {
    for (int parts = 1; parts < 2 * most; parts *= 2) {
      program.divide(std::min(parts, most));
      choice.candidates.push_back({std::min(parts, most), predict_step_seconds(program, *lanes, window)});
    }
    if (scheduling != Scheduling::side_by_side) {
      choice.parts = best_parts(choice.candidates, scheduling == Scheduling::divided ? 2 : 1);
    }
  }
  program.divide(choice.parts);
  return choice;
}

}  // namespace purine
