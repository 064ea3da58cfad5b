#include "purine/runtime/device.h"

#include <chrono>

namespace purine {

std::int64_t SteadyClock::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool QueueFailed::is(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const QueueFailed&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace purine
