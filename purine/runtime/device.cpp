#include "purine/runtime/device.h"

#include <chrono>

namespace purine {

std::int64_t SteadyClock::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace purine
