#include "purine/ops/constant.h"

#include <algorithm>

#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_constant(KernelRegistry& registry) {
  registry.add("constant", [](const BindContext& context) {
    const auto& contract = context.as<ops::Constant>();
    return with_dtype(contract.info().dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto value = static_cast<T>(contract.value());
      const std::int64_t elements = contract.info().shape.elements();
      const int parts = elementwise_parts(elements);
      return make_kernel(
          [=](const KernelCall& call) {
            const auto [begin, end] = part_range(elements, call.part, parts);
            std::fill(call.output<T>(0) + begin, call.output<T>(0) + end, value);
          },
          parts);
    });
  });
}

}  // namespace purine::cpu
