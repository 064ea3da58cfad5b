// The CPU's kernels.
#pragma once

#include "purine/program/kernel.h"

namespace purine::cpu {

/// Adds the kernel of every operator that has one on the CPU (every file of this folder that defines
/// `void register_<file>(KernelRegistry&)`; the build makes this function).
void register_cpu_kernels(KernelRegistry& registry);

}  // namespace purine::cpu
