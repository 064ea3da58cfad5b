#include "purine/cli/stop_on_signal.h"

#include <pthread.h>
#include <unistd.h>

#include <string_view>

#include "purine/cli/commands.h"

namespace purine::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    if (!is_ignored(signal)) ::sigaddset(&signals_, signal);
  }
  ::sigaddset(&signals_, SIGUSR2);  // the destructor's, to the waiting thread alone
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  waiter_ = std::thread([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
  done_ = true;
  ::pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void StopOnSignal::wait() {
  int signal = 0;
  while (!done_) {
    if (::sigwait(&signals_, &signal) != 0 || signal == SIGUSR2) continue;
    if (source_.stop_requested()) {
      static constexpr std::string_view text = "\nended; the last checkpoint is as it was\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
      ::_exit(interrupted);
    }
    source_.request_stop();
  }
}

}  // namespace purine::cli
