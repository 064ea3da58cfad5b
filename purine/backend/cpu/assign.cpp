#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_assign(KernelRegistry& registry) {
  registry.add("assign", [](const BindContext& context) { return byte_copy_kernel(context, 1); });
}

}  // namespace purine::cpu
