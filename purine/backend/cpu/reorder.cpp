#include "purine/ops/reorder.h"

#include <cstring>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/transpose_block.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// Of each sample, a matrix [channels, pixels] becomes [pixels, channels] or the other way round. A part is a
/// range of samples.
template <typename T>
std::unique_ptr<Kernel> bind_reorder(const BindContext& context) {
  const Shape& shape = context.input(0).shape;
  const bool to_last = context.output_layouts[0] == Layout::channels_last;
  const std::int64_t pixels = shape[2] * shape[3];
  const std::int64_t rows = to_last ? shape[1] : pixels;
  const std::int64_t columns = to_last ? pixels : shape[1];
  const std::int64_t samples = shape[0];
  const std::int64_t elements = shape.elements();
  if (context.input_layouts[0] == context.output_layouts[0] || rows <= 1 || columns <= 1) {
    return elementwise_kernel<T>(elements, [](const T* x, T* y, std::int64_t n) {
      std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(T));
    });
  }
  const auto parts = static_cast<int>(std::clamp<std::int64_t>(samples, 1, elementwise_parts(elements)));
  return make_kernel(
      [=](const KernelCall& call) {
        const std::int64_t end = samples * (call.part + 1) / parts;
        for (std::int64_t sample = samples * call.part / parts; sample < end; ++sample) {
          transpose_block(call.input<T>(0) + sample * rows * columns, columns,
                          call.output<T>(0) + sample * rows * columns, rows, rows, columns);
        }
      },
      parts);
}

}  // namespace

void register_reorder(KernelRegistry& registry) {
  registry.add("reorder", [](const BindContext& context) {
    return with_element_size(size_of(context.input(0).dtype),
                             [&](auto zero) { return bind_reorder<decltype(zero)>(context); });
  });
}

}  // namespace purine::cpu
