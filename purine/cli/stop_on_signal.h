// Ctrl-C as a request, not as an end.
#pragma once

#include <signal.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace purine::cli {

/// While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 (which mpirun passes on to its ranks, and
/// Slurm can send before a job's time is over) requests a stop, and the second ends the process at once with
/// status 130. Made before any other thread, which then inherits that these signals are not its
/// own. Signals that the process was started to ignore stay ignored.
class StopOnSignal {
 public:
  StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

  std::stop_token token() const { return source_.get_token(); }

 private:
  void wait();

  sigset_t signals_{};
  sigset_t mask_before_{};
  std::stop_source source_;
  std::atomic<bool> done_ = false;
  std::thread waiter_;
};

}  // namespace purine::cli
