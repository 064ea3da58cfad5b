#include "purine/runtime/yielding_thread.h"

#include <sched.h>

namespace purine {

void yield_to_workers() noexcept {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);  // 0: the calling thread
}

}  // namespace purine
