#include "purine/runtime/idle_workers.h"

namespace purine {

void IdleWorkers::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true);
  }
  permitted_.notify_all();
}

bool IdleWorkers::stay_awake() {
  std::uint64_t state = state_.load();
  do {
    if (sleepers(state) == 0) return false;
  } while (!state_.compare_exchange_weak(state, state - sleeper + searcher));
  return true;
}

void IdleWorkers::sleep() {
  std::unique_lock lock(mutex_);
  permitted_.wait(lock, [&] { return permits_ > 0 || closed_.load(); });
  if (permits_ > 0) --permits_;
}

void IdleWorkers::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++permits_;
  }
  permitted_.notify_one();
}

}  // namespace purine
