#include "purine/ops/moving_average.h"

#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> bind_moving_average(std::int64_t elements, const ops::MovingAverage& contract) {
  const int parts = elementwise_parts(elements);
  const auto kept = static_cast<T>(1 - contract.momentum());
  const auto added = static_cast<T>(contract.momentum() * contract.factor());
  return make_kernel(
      [=](const KernelCall& call) {
        const T* running = call.input<T>(0);
        const T* value = call.input<T>(1);
        T* next = call.output<T>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) next[i] = kept * running[i] + added * value[i];
      },
      parts);
}

}  // namespace

void register_moving_average(KernelRegistry& registry) {
  registry.add("moving_average", [](const BindContext& context) {
    return with_floating(context.input(0).dtype, [&](auto zero) {
      return bind_moving_average<decltype(zero)>(context.input(0).shape.elements(),
                                                 context.as<ops::MovingAverage>());
    });
  });
}

}  // namespace purine::cpu
