#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_relu(KernelRegistry& registry) {
  add_floating(registry, "relu", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), arithmetic_loops<T>().relu);
  });
  add_floating(registry, "relu_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().leaky_relu_gradient;
    return elementwise_kernel_of_two<T>(context.input(0).shape.elements(),
                                        [loop](const T* gradient, const T* output, T* y, std::int64_t n) {
                                          loop(gradient, output, T{0}, y, n);
                                        });
  });
}

}  // namespace purine::cpu
