#include "purine/ops/reduce.h"

#include <algorithm>
#include <array>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/strided_rows.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// How a tensor is reduced. The loops over its dimensions are divided into those over what is kept and those
/// over what is reduced; the input's innermost loop belongs to one of them.
struct ReducePlan {
  StridedRows<2> kept;     // operands: input, output
  StridedRows<1> reduced;  // operand: input
  bool inner_is_reduced = true;
};

ReducePlan plan_reduction(const BindContext& context, const ops::Reduction& reduction) {
  ReducePlan plan;
  const Shape& shape = context.input(0).shape;
  const Extents input = strides_of(shape, context.input_layouts[0]);
  const Extents output = strides_of(context.output(0).shape, context.output_layouts[0]);
  const auto order = memory_order(shape.rank(), context.input_layouts[0]);
  for (int i = 0; i < shape.rank(); ++i) {
    const int dimension = order[static_cast<std::size_t>(i)];
    const std::int64_t stride = input[static_cast<std::size_t>(dimension)];
    if (reduction.reduces(dimension)) {
      plan.reduced.add(shape[dimension], {stride});
    } else {
      plan.kept.add(shape[dimension],
                    {stride, output[static_cast<std::size_t>(reduction.position(dimension))]});
    }
    if (shape[dimension] > 1) plan.inner_is_reduced = reduction.reduces(dimension);
  }
  return plan;
}

constexpr std::int64_t columns_at_a_time = 64;

/// Sums divided by `divisor`. Each output is summed by one part, in one order.
template <typename T>
std::unique_ptr<Kernel> bind_reduction(const BindContext& context, const ops::Reduction& reduction,
                                       double divisor) {
  const ReducePlan plan = plan_reduction(context, reduction);
  const ReduceLoops<T>& loops = reduce_loops<T>();
  const std::int64_t outputs = plan.kept.elements();
  // Where the innermost loop is kept, neighbouring outputs are summed side by side in tiles of this width.
  const std::int64_t width = plan.inner_is_reduced ? 1 : columns_at_a_time;
  const std::int64_t groups = (outputs + width - 1) / width;
  const auto parts = static_cast<int>(
      std::clamp<std::int64_t>(groups, 1, elementwise_parts(context.input(0).shape.elements())));
  return make_kernel(
      [plan, &loops, outputs, width, groups, parts, divisor](const KernelCall& call) {
        const T* x = call.input<T>(0);
        T* y = call.output<T>(0);
        const std::int64_t begin = groups * call.part / parts * width;
        const std::int64_t end = std::min(outputs, groups * (call.part + 1) / parts * width);
        const std::int64_t all = plan.reduced.elements();
        const std::int64_t input_step = plan.kept.row_strides()[0];
        const std::int64_t output_step = plan.kept.row_strides()[1];
        plan.kept.run(begin, end, [&](std::int64_t, const auto& offsets, std::int64_t count) {
          if (plan.inner_is_reduced) {
            for (std::int64_t i = 0; i < count; ++i) {
              const T* from = x + offsets[0] + i * input_step;
              double total = 0;
              plan.reduced.run(0, all, [&](std::int64_t, const auto& at, std::int64_t n) {
                total += loops.sum(from + at[0], n);
              });
              y[offsets[1] + i * output_step] = static_cast<T>(total / divisor);
            }
            return;
          }
          for (std::int64_t first = 0; first < count; first += columns_at_a_time) {
            const std::int64_t columns = std::min(columns_at_a_time, count - first);
            std::array<double, columns_at_a_time> totals{};
            const std::int64_t step = plan.reduced.row_strides()[0];
            plan.reduced.run(0, all, [&](std::int64_t, const auto& at, std::int64_t n) {
              for (std::int64_t k = 0; k < n; ++k) {
                loops.accumulate(x + offsets[0] + first + at[0] + k * step, totals.data(), columns);
              }
            });
            for (std::int64_t i = 0; i < columns; ++i) {
              y[offsets[1] + (first + i) * output_step] =
                  static_cast<T>(totals[static_cast<std::size_t>(i)] / divisor);
            }
          }
        });
      },
      parts);
}

/// Repeats the input, of which `repeated` says the strides along the output's dimensions, and divides it.
template <typename T>
std::unique_ptr<Kernel> bind_repetition(const BindContext& context, const Extents& repeated, T divisor) {
  const Shape& output = context.output(0).shape;
  StridedRows<1> rows;
  const auto order = memory_order(output.rank(), context.output_layouts[0]);
  for (int i = 0; i < output.rank(); ++i) {
    const int dimension = order[static_cast<std::size_t>(i)];
    rows.add(output[dimension], {repeated[static_cast<std::size_t>(dimension)]});
  }
  const std::int64_t step = rows.row_strides()[0];
  const int parts = elementwise_parts(output.elements());
  return make_kernel(
      [=](const KernelCall& call) {
        const T* x = call.input<T>(0);
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(rows.elements(), call.part, parts);
        rows.run(begin, end, [&](std::int64_t position, const auto& offsets, std::int64_t count) {
          if (step == 0) {
            std::fill_n(y + position, count, x[offsets[0]] / divisor);
          } else {
            for (std::int64_t i = 0; i < count; ++i) y[position + i] = x[offsets[0] + i * step] / divisor;
          }
        });
      },
      parts);
}

double divisor_of(std::int64_t divisor, const ops::Reduction& reduction, const Shape& shape) {
  return static_cast<double>(divisor != 0 ? divisor : reduction.count(shape));
}

Extents strides_of_repeated(const BindContext& context) {
  const Shape& from = context.input(0).shape;
  const Extents own = strides_of(from, context.input_layouts[0]);
  Extents strides{};
  const int missing = context.output(0).shape.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] != 1) strides[static_cast<std::size_t>(i + missing)] = own[static_cast<std::size_t>(i)];
  }
  return strides;
}

Extents strides_of_reduced(const BindContext& context, const ops::Reduction& reduction) {
  const Extents own = strides_of(context.input(0).shape, context.input_layouts[0]);
  Extents strides{};
  for (int i = 0; i < context.output(0).shape.rank(); ++i) {
    if (!reduction.reduces(i)) {
      strides[static_cast<std::size_t>(i)] = own[static_cast<std::size_t>(reduction.position(i))];
    }
  }
  return strides;
}

}  // namespace

void register_reduce(KernelRegistry& registry) {
  add_floating(registry, "sum", [](const BindContext& context, auto zero) {
    return bind_reduction<decltype(zero)>(context, context.as<ops::Sum>().reduction(), 1);
  });
  add_floating(registry, "mean", [](const BindContext& context, auto zero) {
    const auto& mean = context.as<ops::Mean>();
    return bind_reduction<decltype(zero)>(
        context, mean.reduction(), divisor_of(mean.divisor(), mean.reduction(), context.input(0).shape));
  });
  add_floating(registry, "mean_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto& contract = context.as<ops::MeanGradient>();
    return bind_repetition<T>(
        context, strides_of_reduced(context, contract.reduction()),
        static_cast<T>(divisor_of(contract.divisor(), contract.reduction(), contract.shape())));
  });
  add_floating(registry, "sum_of_squares", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = reduce_loops<T>().sum_of_squares;
    const std::int64_t elements = context.input(0).shape.elements();
    return make_kernel(
        [=](const KernelCall& call) { *call.output<double>(0) = loop(call.input<T>(0), elements); });
  });
  add_floating(registry, "broadcast_to", [](const BindContext& context, auto zero) {
    return bind_repetition<decltype(zero)>(context, strides_of_repeated(context), 1);
  });
}

}  // namespace purine::cpu
