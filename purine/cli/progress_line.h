// What goes on, while something takes long.
#pragma once

#include <chrono>
#include <string_view>

namespace purine::cli {

/// A line on standard error, if that is a terminal, which each next text takes the place of; it is wiped out
/// in the end. A text that comes too soon after the one before it is not shown: a few are a second.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void show(std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;

  const bool on_terminal_;
  bool is_shown_ = false;
  Clock::time_point shown_ = {};
};

}  // namespace purine::cli
