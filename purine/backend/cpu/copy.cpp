#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_copy(KernelRegistry& registry) {
  registry.add("copy", [](const BindContext& context) { return byte_copy_kernel(context); });
}

}  // namespace purine::cpu
