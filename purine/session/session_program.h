// One of a session's programs on its dispatcher.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "purine/runtime/dispatcher.h"
#include "purine/session/arrivals.h"
#include "purine/session/device_memory.h"
#include "purine/session/session.h"
#include "purine/session/wait_meter.h"

namespace purine {

/// How a session freezes its graph, but for the kernels that bring inputs in and hand watched values out.
FreezeOptions freeze_options(const Runtime& runtime, const SessionOptions& options);

/// The graph for one batch size, frozen, with its dispatcher, and a ring of the values that the host reads.
class SessionProgram final : public Executor {
 public:
  using Fill = std::function<void(std::int64_t, std::span<std::byte>)>;

  /// All arguments must outlive it; `fills`, by the inputs' paths, may change while nothing runs.
  SessionProgram(Runtime& runtime, Graph& graph, const SessionOptions& options,
                 const std::map<std::string, Fill>& fills, WaitMeter& meter);

  Program& program() { return *program_; }
  const Program& program() const { return *program_; }
  /// Gives the program its memory and makes its lanes. `scratch` holds a buffer for each worker.
  void start(Runtime& runtime, const DeviceMemory& memory, std::span<const AlignedBuffer> scratch);

  /// While nothing runs: the next iteration of the dispatcher is this one.
  void begin_at(std::int64_t iteration);
  void admit(std::int64_t end) { dispatcher_->admit(end - base_); }
  bool wait_for(std::int64_t iteration) { return dispatcher_->wait_for(iteration - base_); }
  std::optional<bool> wait_for(std::int64_t iteration, std::chrono::nanoseconds limit) {
    return dispatcher_->wait_for(iteration - base_, limit);
  }
  bool drain() { return dispatcher_->drain(); }
  /// What has been waited for the longest, of all that other ranks are to send; nothing if nothing is
  /// missing.
  std::optional<RankWait> waits_for() const;
  /// Throws what failed, with its operator's path and location and the iteration.
  [[noreturn]] void throw_failure() const;

  /// Of an iteration that is finished and less than `ring_size()` behind the admitted ones: the watched
  /// tensors' values, in the order of Graph::watched.
  const std::vector<std::vector<std::byte>>& values(std::int64_t iteration) const {
    return ring_[static_cast<std::size_t>(iteration) % ring_.size()];
  }
  std::int64_t ring_size() const { return static_cast<std::int64_t>(ring_.size()); }

  int parts(std::uint32_t op) const override { return program_->parts(op); }
  void run(std::uint32_t op, std::int64_t iteration, int part, int worker) override;
  void issue(std::uint32_t op, std::int64_t iteration, Queue& queue) override;
  void start(std::uint32_t op, std::int64_t iteration, double urgency, CompletionListener& listener,
             std::uint64_t tag) override;
  /// Tells the other ranks.
  void failed(const Failure& failure) override;

 private:
  void ran(const Execution& execution);
  [[noreturn]] void rethrow(const Failure& failure) const;
  std::unique_ptr<Kernel> read_kernel(Tensor tensor);
  std::unique_ptr<Kernel> input_kernel(Tensor tensor);

  Graph& graph_;
  const SessionOptions& options_;
  const std::map<std::string, Fill>& fills_;
  WaitMeter& meter_;
  Endpoint* endpoint_;
  trace::TransferMeter* transfer_meter_;  // null if there is one process alone
  std::unique_ptr<Program> program_;
  std::vector<std::uint8_t> brings_data_;  // by operator
  std::optional<Arrivals> arrivals_;       // none if there is one process alone
  std::span<const AlignedBuffer> scratch_;
  // By worker, what its scratch memory holds: that of the last part it ran. Each writes its own.
  struct alignas(64) ScratchUse {
    std::uint32_t op = 0;
    std::int64_t iteration = -1;
  };
  std::vector<ScratchUse> scratch_use_;
  std::vector<std::byte*> device_scratch_;  // by place; null for CPUs
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::vector<std::vector<std::byte>>> ring_;  // by iteration, by watched tensor
  std::int64_t base_ = 0;                                  // the dispatcher's iteration 0
  mutable std::mutex missing_mutex_;
  std::optional<Failure> missing_;          // the first exchange with a rank that was lost
  std::unique_ptr<Dispatcher> dispatcher_;  // last: its workers use all of the above
};

}  // namespace purine
