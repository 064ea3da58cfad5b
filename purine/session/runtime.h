// This process's devices and the kernels they have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "purine/core/location.h"
#include "purine/program/kernel.h"

namespace purine {

struct RuntimeOptions {
  /// Threads that run CPU operators; 0: one for each core that the process may use.
  int workers = 0;
};

/// What programs run on: the workers of this process, and the kernels. Made once and passed on.
class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  int workers() const { return workers_; }
  /// Cores that the process may use (its affinity mask).
  static int available_cores();
  std::vector<Location> locations() const;
  const KernelRegistry& cpu_kernels() const { return cpu_kernels_; }
  /// To add kernels of one's own operators, before a session is made.
  KernelRegistry& cpu_kernels() { return cpu_kernels_; }

 private:
  int workers_;
  KernelRegistry cpu_kernels_;
};

}  // namespace purine
