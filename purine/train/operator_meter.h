// How long each operator of a session takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "purine/program/cost_table.h"
#include "purine/session/session.h"
#include "purine/trace/recorder.h"

namespace purine::train {

/// Measures the operators that CPU workers run in chosen iterations: give `hook()` to the session, and read
/// the costs when the iterations are over.
class OperatorMeter {
 public:
  /// Iterations [first, end) of a session of this runtime.
  OperatorMeter(std::int64_t first, std::int64_t end, const Runtime& runtime);

  /// Measures those in place of them; there is room for no more than there were.
  void set_iterations(std::int64_t first, std::int64_t end) { recorder_.set_iterations(first, end); }

  std::function<void(const RanEvent&)> hook();
  /// The operators that ran, in the program's order, each with the median over iterations of the time that
  /// its parts took together. While the session lives and doesn't run.
  program::CostTable costs(program::MeasuredMachine machine) const;

 private:
  trace::Recorder recorder_;
  std::atomic<const Program*> program_ = nullptr;
};

}  // namespace purine::train
