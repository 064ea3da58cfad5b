#include "purine/ops/binary.h"

#include <algorithm>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/strided_rows.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The loops for integers, which are not compiled for several instruction sets; overflow wraps.
template <typename T, typename Function>
struct IntegerLoops {
  static T apply(T a, T b) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(Function()(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  }
  static void vectors(const T* a, const T* b, T* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply(a[i], b[i]);
  }
  static void vector_scalar(const T* a, T b, T* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply(a[i], b);
  }
  static void scalar_vector(T a, const T* b, T* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = apply(a, b[i]);
  }
};

template <typename T, typename Function>
BinaryLoops<T> integer_loops() {
  using Loops = IntegerLoops<T, Function>;
  return {&Loops::vectors, &Loops::vector_scalar, &Loops::scalar_vector};
}

/// The strides of an operand along the output's dimensions: 0 where it is repeated.
Extents repeated_strides(const Shape& operand, Layout layout, const Shape& output) {
  const Extents own = strides_of(operand, layout);
  Extents strides{};
  const int missing = output.rank() - operand.rank();
  for (int i = 0; i < operand.rank(); ++i) {
    if (operand[i] != 1) strides[static_cast<std::size_t>(i + missing)] = own[static_cast<std::size_t>(i)];
  }
  return strides;
}

template <typename T>
std::unique_ptr<Kernel> bind_binary(const BindContext& context, BinaryLoops<T> loops) {
  const Shape& output = context.output(0).shape;
  const Extents a_strides = repeated_strides(context.input(0).shape, context.input_layouts[0], output);
  const Extents b_strides = repeated_strides(context.input(1).shape, context.input_layouts[1], output);
  StridedRows<2> rows;
  const auto order = memory_order(output.rank(), context.output_layouts[0]);
  for (int i = 0; i < output.rank(); ++i) {
    const auto dimension = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    rows.add(output[static_cast<int>(dimension)], {a_strides[dimension], b_strides[dimension]});
  }
  const auto [a_step, b_step] = rows.row_strides();
  const int parts = elementwise_parts(output.elements());
  return make_kernel(
      [=, a_step = a_step, b_step = b_step](const KernelCall& call) {
        const T* a = call.input<T>(0);
        const T* b = call.input<T>(1);
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(rows.elements(), call.part, parts);
        rows.run(begin, end, [&](std::int64_t position, const auto& offsets, std::int64_t count) {
          if (a_step > 1 || b_step > 1) {
            // Of different layouts: one steps over what the other has side by side.
            for (std::int64_t i = 0; i < count; ++i) {
              loops.vectors(a + offsets[0] + i * a_step, b + offsets[1] + i * b_step, y + position + i, 1);
            }
          } else if (a_step == b_step) {  // both advance, or the row is one element
            loops.vectors(a + offsets[0], b + offsets[1], y + position, count);
          } else if (b_step == 0) {
            loops.vector_scalar(a + offsets[0], b[offsets[1]], y + position, count);
          } else {
            loops.scalar_vector(a[offsets[0]], b + offsets[1], y + position, count);
          }
        });
      },
      parts);
}

/// `member` is the operator's table in ArithmeticLoops.
template <typename Function, typename Member>
void add_binary(KernelRegistry& registry, std::string_view type, Member member) {
  registry.add(type, [member](const BindContext& context) {
    return with_dtype(context.input(0).dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>) {
        return bind_binary<T>(context, member(arithmetic_loops<T>()));
      } else {
        return bind_binary<T>(context, integer_loops<T, Function>());
      }
    });
  });
}

}  // namespace

void register_binary(KernelRegistry& registry) {
  add_binary<std::plus<>>(registry, "add", [](const auto& loops) { return loops.add; });
  add_binary<std::minus<>>(registry, "subtract", [](const auto& loops) { return loops.subtract; });
  add_binary<std::multiplies<>>(registry, "multiply", [](const auto& loops) { return loops.multiply; });
  add_floating(registry, "divide", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return bind_binary<T>(context, arithmetic_loops<T>().divide);
  });
}

}  // namespace purine::cpu
