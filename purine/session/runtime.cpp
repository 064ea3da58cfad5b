#include "purine/session/runtime.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "purine/backend/cpu/kernels.h"
#include "purine/core/error.h"
#include "purine/data/source.h"

namespace purine {

Runtime::Runtime(RuntimeOptions options) : workers_(options.workers) {
  if (workers_ < 0 || workers_ > 1024) {
    throw Error("runtime", std::to_string(workers_) + " workers can't be",
                "give 1 to 1024, or 0 for one a core");
  }
  if (workers_ == 0) workers_ = available_cores();
  cpu::register_cpu_kernels(cpu_kernels_);
  data::register_kernels(cpu_kernels_);
}

Runtime::~Runtime() = default;

int Runtime::available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<Location> Runtime::locations() const {
  return {Location{}};
}

}  // namespace purine
