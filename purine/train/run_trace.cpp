#include "purine/train/run_trace.h"

#include <fmt/format.h>

namespace purine::train {

RunTrace::RunTrace(const Job& job, const Runtime& runtime) : job_(job.trace) {
  if (job_.steps == 0) return;
  trace_.emplace(job_.first_step, job_.first_step + job_.steps, job_.megabytes, runtime,
                 std::vector<std::pair<std::string, std::string>>{{"model", job.model.name},
                                                                  {"batch", std::to_string(job.data.batch)}});
}

std::function<void(const RanEvent&)> RunTrace::hook() {
  return trace_ ? trace_->hook() : nullptr;
}

std::optional<std::string> RunTrace::write(Runtime& runtime, const RunPaths& paths,
                                           const Position& position) {
  if (!trace_ || is_done_ || (position.step < end() && !position.is_last)) return std::nullopt;
  const bool has_events = position.step > job_.first_step && position.first_step < end();
  if (!has_events) return std::nullopt;
  is_done_ = true;
  const std::filesystem::path path = paths.free_trace(position.first_step);
  const StepTrace::Written written = trace_->write_all(runtime, path);
  error_ = written.error;
  if (error_) return fmt::format("the trace is lost: {}", error_->what());
  path_ = path;
  if (written.left_out == 0) return std::nullopt;
  return fmt::format("the trace is full: the latest {} events are left out; trace.megabytes is {}",
                     written.left_out, job_.megabytes);
}

void RunTrace::write_alone(const RunPaths& paths, std::int64_t first_step) {
  if (!trace_ || is_done_ || !trace_->has_events()) return;
  is_done_ = true;
  trace_->write(paths.free_trace(first_step));
}

}  // namespace purine::train
