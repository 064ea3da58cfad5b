#include "purine/ops/pad.h"

#include <algorithm>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/layout.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// Extents and paddings from the outermost dimension in memory to the innermost.
struct PadPlan {
  int rank = 0;
  Extents input{};
  Extents output{};
  Extents before{};
};

/// Where row `row` of the output comes from: the row of the input, or -1 if it is all padding.
std::int64_t input_row(const PadPlan& plan, std::int64_t row) {
  std::int64_t found = 0;
  std::int64_t stride = 1;
  for (int i = plan.rank - 2; i >= 0; --i) {
    const auto dimension = static_cast<std::size_t>(i);
    const std::int64_t place = row % plan.output[dimension] - plan.before[dimension];
    row /= plan.output[dimension];
    if (place < 0 || place >= plan.input[dimension]) return -1;
    found += place * stride;
    stride *= plan.input[dimension];
  }
  return found;
}

template <typename T>
std::unique_ptr<Kernel> bind_pad(const BindContext& context) {
  const auto& pad = context.as<ops::Pad>();
  const Shape& input = context.input(0).shape;
  const Shape& output = context.output(0).shape;
  PadPlan plan;
  plan.rank = std::max(1, input.rank());
  plan.input[0] = plan.output[0] = 1;  // what a scalar has
  const auto order = memory_order(input.rank(), context.input_layouts[0]);
  for (int i = 0; i < input.rank(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    const int dimension = order[place];
    plan.input[place] = input[dimension];
    plan.output[place] = output[dimension];
    plan.before[place] = pad.before()[static_cast<std::size_t>(dimension)];
  }
  const auto last = static_cast<std::size_t>(plan.rank - 1);
  const std::int64_t length = plan.input[last];
  const std::int64_t padded = plan.output[last];
  const std::int64_t before = plan.before[last];
  const std::int64_t rows = padded == 0 ? 0 : output.elements() / padded;
  const auto value = static_cast<T>(pad.value());
  const auto parts =
      static_cast<int>(std::clamp<std::int64_t>(rows, 1, elementwise_parts(output.elements())));
  return make_kernel(
      [=](const KernelCall& call) {
        const std::int64_t end = rows * (call.part + 1) / parts;
        for (std::int64_t row = rows * call.part / parts; row < end; ++row) {
          T* y = call.output<T>(0) + row * padded;
          const std::int64_t from = input_row(plan, row);
          if (from < 0) {
            std::fill_n(y, padded, value);
            continue;
          }
          std::fill_n(y, before, value);
          std::copy_n(call.input<T>(0) + from * length, length, y + before);
          std::fill_n(y + before + length, padded - before - length, value);
        }
      },
      parts);
}

}  // namespace

void register_pad(KernelRegistry& registry) {
  registry.add("pad", [](const BindContext& context) {
    return with_dtype(context.input(0).dtype, [&](auto zero) { return bind_pad<decltype(zero)>(context); });
  });
}

}  // namespace purine::cpu
