#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "purine/cli/commands.h"
#include "purine/data/check.h"

namespace purine::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Shows on a terminal how far the check has come, a few times a second.
class Counter {
 public:
  void show(std::int64_t done, std::int64_t total) {
    const Clock::time_point now = Clock::now();
    if (done < total && now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    fmt::print(stderr, "\r{} of {} images\033[K", done, total);
    is_shown_ = true;
  }
  ~Counter() {
    if (is_shown_) fmt::print(stderr, "\r\033[K");
  }

 private:
  Clock::time_point shown_ = {};
  bool is_shown_ = false;
};

data::CheckReport check(const std::string& folder) {
  Counter counter;
  data::CheckOptions options;
  if (::isatty(STDERR_FILENO) == 1) {
    options.progress = [&](std::int64_t done, std::int64_t total) { counter.show(done, total); };
  }
  return data::check(folder, options);
}

}  // namespace

int data_check(const DataCheckRequest& request) {
  const data::CheckReport report = check(request.folder);
  fmt::print("{}{}", request.json ? report.json() : report.text(), request.json ? "\n" : "");
  return report.ok() ? success : failure;
}

}  // namespace purine::cli
