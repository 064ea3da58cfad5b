#include "purine/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace purine::cli {

ProgressLine::ProgressLine() : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(std::string_view text) {
  const Clock::time_point now = Clock::now();
  if (!on_terminal_ || (is_shown_ && now - shown_ < std::chrono::milliseconds(200))) return;
  fmt::print(stderr, "\r{}\033[K", text);
  shown_ = now;
  is_shown_ = true;
}

}  // namespace purine::cli
