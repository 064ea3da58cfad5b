// Notes of workers and of other ranks.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "purine/session/runtime.h"

namespace purine::train {

/// Notes that workers leave for the thread that trains, and that this one tells at rank 0.
class Notes {
 public:
  /// May be called by any thread.
  void add(std::string text);
  /// At rank 0 those that have been left there since the last call, and nothing elsewhere.
  std::vector<std::string> take(const Runtime& runtime);
  /// At rank 0 those of all other ranks, which their number goes before. A collective call between runs.
  std::vector<std::string> gather(Runtime& runtime);

 private:
  std::vector<std::string> take_all();

  std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace purine::train
