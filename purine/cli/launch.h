// A command that a launcher has started several times over, each time as one rank of the same run.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/job_target.h"
#include "purine/cli/requests.h"
#include "purine/net/start_up.h"
#include "purine/runtime/endpoint.h"
#include "purine/session/runtime.h"
#include "purine/train/job_file.h"

namespace purine::cli {

/// This process among those that were started with it; it may well be the only one.
class Launch {
 public:
  /// Connects the processes. One that is silent for so many seconds is lost.
  explicit Launch(double stall_limit = 30);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Null if this process is the only one.
  Endpoint* endpoint() { return endpoint_.get(); }
  int ranks() const { return endpoint_ ? endpoint_->size() : 1; }
  /// Rank 0 prints for all.
  bool is_first() const { return !endpoint_ || endpoint_->rank() == 0; }

  /// At rank 0: told where it has to wait for another rank. Before it is called such notes go to standard
  /// error.
  void tell_waits(std::function<void(const std::string&)> tell) { tell_ = std::move(tell); }

  /// The job of all ranks. Where it comes from a run folder, which rank 0 alone need have, it is rank 0's;
  /// else each has its own, and all must have one. A collective call.
  train::LoadedJob agree_on(const Attempt& own, bool is_in_run_folder);
  /// The devices that a job has at this rank, for as many workers as the command or the job says, or as the
  /// process has cores for itself. Measures the network before. A collective call.
  std::unique_ptr<Runtime> make_runtime(const train::LoadedJob& loaded, const RunRequest& run);

  /// What was measured of the network, by rank; empty before, and if this process is the only one.
  const std::vector<net::Link>& links() const { return links_; }

  /// Calls the body of a command and returns its exit status. What it throws ends the run at all ranks. One
  /// of them prints it, as a line that begins with rank and host: the one at which it happened, or, if that
  /// one is gone, the first that is left.
  int run(const std::function<int()>& body);

 private:
  int fail(const std::exception_ptr& error);

  std::function<void(const std::string&)> tell_ = {};
  std::unique_ptr<Endpoint> endpoint_;
  std::vector<net::Link> links_;
};

}  // namespace purine::cli
