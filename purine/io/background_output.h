// Text for a reader who may stop reading at the worst moment.
#pragma once

#include <cstdio>
#include <memory>
#include <stop_token>
#include <string_view>

#include "purine/io/text_output.h"

namespace purine::io {

/// Writes by a thread of its own. A launcher that passes on what its processes write stops doing so when it
/// is about to end them: those that have still something to save must not wait for it. So once a stop is
/// requested nobody waits for the reader any more, but for a second in `flush`.
class BackgroundOutput final : public TextOutput {
 public:
  BackgroundOutput(std::FILE* file, std::stop_token stop);
  BackgroundOutput(const BackgroundOutput&) = delete;
  BackgroundOutput& operator=(const BackgroundOutput&) = delete;
  /// Flushes.
  ~BackgroundOutput() override;

  /// Returns at once, unless a megabyte waits to be written already.
  void write(std::string_view text) override;
  void flush() override;

 private:
  class State;
  std::stop_token stop_;
  std::shared_ptr<State> state_;  // outlives this where the thread never comes back from the reader
};

}  // namespace purine::io
