// A command that a launcher has started several times over, each time as one rank of the same run.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "purine/cli/requests.h"
#include "purine/runtime/endpoint.h"
#include "purine/session/runtime.h"
#include "purine/train/job_file.h"

namespace purine::cli {

/// This process among those that were started with it; it may well be the only one.
class Launch {
 public:
  /// Connects the processes. One that is silent for so many seconds is lost.
  explicit Launch(double stall_limit = 30);

  /// Null if this process is the only one.
  Endpoint* endpoint() { return endpoint_.get(); }
  int ranks() const { return endpoint_ ? endpoint_->size() : 1; }
  /// Rank 0 prints for all.
  bool is_first() const { return !endpoint_ || endpoint_->rank() == 0; }

  /// The devices that a job has at this rank, for as many workers as the command or the job says, or as the
  /// process has cores for itself. A collective call.
  std::unique_ptr<Runtime> make_runtime(const train::LoadedJob& loaded, const RunRequest& run);

  /// Calls the body of a command and returns its exit status. What it throws ends the run at all ranks. One
  /// of them prints it, as a line that begins with rank and host: the one at which it happened, or, if that
  /// one is gone, the first that is left.
  int run(const std::function<int()>& body);

 private:
  int fail(const std::exception_ptr& error);

  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace purine::cli
