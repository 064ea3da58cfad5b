#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> bind_relu(std::int64_t elements) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const T* x = call.input<T>(0);
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] > T{0} ? x[i] : T{0};
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_relu_gradient(std::int64_t elements) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const T* output_gradient = call.input<T>(0);
        const T* output = call.input<T>(1);
        T* gradient = call.output<T>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) gradient[i] = output[i] > T{0} ? output_gradient[i] : T{0};
      },
      parts);
}

}  // namespace

void register_relu(KernelRegistry& registry) {
  registry.add("relu", [](const BindContext& context) {
    return with_floating(context.input(0).dtype, [&](auto zero) {
      return bind_relu<decltype(zero)>(context.input(0).shape.elements());
    });
  });
  registry.add("relu_gradient", [](const BindContext& context) {
    return with_floating(context.input(0).dtype, [&](auto zero) {
      return bind_relu_gradient<decltype(zero)>(context.input(0).shape.elements());
    });
  });
}

}  // namespace purine::cpu
