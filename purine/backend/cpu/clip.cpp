#include "purine/ops/clip.h"

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

void register_clip(KernelRegistry& registry) {
  add_floating(registry, "clip", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().clip;
    const auto low = static_cast<T>(context.as<ops::Clip>().low());
    const auto high = static_cast<T>(context.as<ops::Clip>().high());
    return elementwise_kernel<T>(context.input(0).shape.elements(),
                                 [=](const T* x, T* y, std::int64_t n) { loop(x, low, high, y, n); });
  });
  add_floating(registry, "clip_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().clip_gradient;
    const auto low = static_cast<T>(context.as<ops::ClipGradient>().low());
    const auto high = static_cast<T>(context.as<ops::ClipGradient>().high());
    return elementwise_kernel_of_two<T>(
        context.input(0).shape.elements(),
        [=](const T* gradient, const T* x, T* y, std::int64_t n) { loop(gradient, x, low, high, y, n); });
  });
}

}  // namespace purine::cpu
