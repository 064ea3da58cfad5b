#include "purine/ops/unbiased_variance.h"

#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> bind_unbiased_variance(const Shape& x) {
  const std::int64_t channels = x[1];
  const std::int64_t n = channels > 0 ? x.elements() / channels : 0;
  const auto factor = static_cast<T>(n > 1 ? static_cast<double>(n) / static_cast<double>(n - 1) : 1.0);
  return make_kernel([=](const KernelCall& call) {
    const T* variance = call.input<T>(0);
    T* unbiased = call.output<T>(0);
    for (std::int64_t i = 0; i < channels; ++i) unbiased[i] = factor * variance[i];
  });
}

}  // namespace

void register_unbiased_variance(KernelRegistry& registry) {
  registry.add("unbiased_variance", [](const BindContext& context) {
    return with_floating(context.input(0).dtype, [&](auto zero) {
      return bind_unbiased_variance<decltype(zero)>(context.input(1).shape);
    });
  });
}

}  // namespace purine::cpu
