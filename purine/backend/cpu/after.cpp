#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_after(KernelRegistry& registry) {
  // Where the result could not be a view.
  registry.add("after", [](const BindContext& context) { return byte_copy_kernel(context); });
}

}  // namespace purine::cpu
