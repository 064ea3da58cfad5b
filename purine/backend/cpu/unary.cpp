#include "purine/ops/unary.h"

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_unary(KernelRegistry& registry) {
  add_floating(registry, "scale", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().multiply.vector_scalar;
    const auto factor = static_cast<T>(context.as<ops::Scale>().factor());
    return elementwise_kernel<T>(context.input(0).shape.elements(),
                                 [=](const T* x, T* y, std::int64_t n) { loop(x, factor, y, n); });
  });
  add_floating(registry, "shift", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().add.vector_scalar;
    const auto offset = static_cast<T>(context.as<ops::Shift>().offset());
    return elementwise_kernel<T>(context.input(0).shape.elements(),
                                 [=](const T* x, T* y, std::int64_t n) { loop(x, offset, y, n); });
  });
  add_floating(registry, "square", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), arithmetic_loops<T>().square);
  });
  add_floating(registry, "sqrt", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), arithmetic_loops<T>().sqrt);
  });
  add_floating(registry, "exp", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), math_loops<T>().exp);
  });
  add_floating(registry, "log", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), math_loops<T>().log);
  });
}

}  // namespace purine::cpu
