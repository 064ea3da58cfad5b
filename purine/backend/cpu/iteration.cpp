#include "purine/ops/iteration.h"

#include <cstdint>

#include "purine/program/kernel.h"

namespace purine::cpu {

void register_iteration(KernelRegistry& registry) {
  registry.add("iteration", [](const BindContext&) {
    return make_kernel([](const KernelCall& call) { *call.output<std::int64_t>(0) = call.iteration; });
  });
}

}  // namespace purine::cpu
