#include "purine/runtime/cpu_workers.h"

#include <pthread.h>
#include <sched.h>

namespace purine {
namespace {

// A core that can't be had is no error: the thread runs where the system puts it.
void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace

CpuWorkers::CpuWorkers(int count, bool pin, const std::function<void(int worker)>& loop) {
  const std::vector<int> cores = available_cores();
  const bool pinned = pin && count == static_cast<int>(cores.size());
  threads_.reserve(static_cast<std::size_t>(count));
  for (int worker = 0; worker < count; ++worker) {
    const int core = pinned ? cores[static_cast<std::size_t>(worker)] : -1;
    threads_.emplace_back([loop, worker, core] {
      if (core >= 0) pin_to(core);
      loop(worker);
    });
  }
}

CpuWorkers::~CpuWorkers() {
  for (std::thread& thread : threads_) thread.join();
}

std::vector<int> CpuWorkers::available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

}  // namespace purine
