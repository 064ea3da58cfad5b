#include "purine/ops/bias.h"

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/layout.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> bind_bias(const BindContext& context) {
  const Shape& shape = context.input(0).shape;
  const AxisView view(shape, context.input_layouts[0], context.as<ops::Bias>().axis());
  const auto loops = arithmetic_loops<T>().add;
  const std::int64_t elements = shape.elements();
  // A part has whole rows: of all channels where they lie side by side, else of one channel.
  const std::int64_t row = view.inner == 1 ? view.extent : view.inner;
  const std::int64_t rows = row == 0 ? 0 : elements / row;
  const auto parts =
      static_cast<int>(std::max<std::int64_t>(1, std::min<std::int64_t>(elementwise_parts(elements), rows)));
  return make_kernel(
      [=](const KernelCall& call) {
        const T* x = call.input<T>(0);
        const T* b = call.input<T>(1);
        T* y = call.output<T>(0);
        const std::int64_t end = rows * (call.part + 1) / parts;
        for (std::int64_t i = rows * call.part / parts; i < end; ++i) {
          if (view.inner == 1) {
            loops.vectors(x + i * row, b, y + i * row, row);
          } else {
            loops.vector_scalar(x + i * row, b[i % view.extent], y + i * row, row);
          }
        }
      },
      parts);
}

}  // namespace

void register_bias(KernelRegistry& registry) {
  add_floating(registry, "bias",
               [](const BindContext& context, auto zero) { return bind_bias<decltype(zero)>(context); });
}

}  // namespace purine::cpu
