// The threads that CPU lanes run on.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace purine {

/// Threads numbered 0 … count - 1 that each run one function, and are joined at the end. With `pin`, if there
/// are as many as the process may use cores, each is pinned to one; fewer are left to the system's scheduler,
/// since several processes may share the cores, and so are more.
class CpuWorkers {
 public:
  CpuWorkers(int count, bool pin, const std::function<void(int worker)>& loop);
  CpuWorkers(const CpuWorkers&) = delete;
  CpuWorkers& operator=(const CpuWorkers&) = delete;
  /// Waits until every function has returned.
  ~CpuWorkers();

  int count() const { return static_cast<int>(threads_.size()); }
  /// The cores in this process's affinity mask, ascending.
  static std::vector<int> available_cores();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace purine
