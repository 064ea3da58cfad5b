#include "purine/ops/reshape.h"

#include <algorithm>
#include <cstring>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/strided_rows.h"
#include "purine/backend/cpu/transpose_block.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The loops of a transpose: those outside are walked one by one, and the matrix inside has in its columns
/// what are neighbours in the input, and in its rows what are neighbours in the output.
struct TransposePlan {
  StridedRows<2> outside;  // operands: input, output
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t input_step = 0;   // from row to row in the input
  std::int64_t output_step = 0;  // from column to column in the output
};

/// The loops of the output over the input, as few as possible: output dimensions that lie behind one another
/// in the input are one loop.
struct MergedLoops {
  int count = 0;
  Extents extents{};
  Extents input_strides{};

  void add(std::int64_t extent, std::int64_t stride) {
    if (extent == 1) return;
    const auto last = static_cast<std::size_t>(count - 1);
    if (count > 0 && input_strides[last] == stride * extent) {
      extents[last] *= extent;
      input_strides[last] = stride;
      return;
    }
    extents[static_cast<std::size_t>(count)] = extent;
    input_strides[static_cast<std::size_t>(count)] = stride;
    ++count;
  }
};

TransposePlan plan_transpose(const Shape& input, const Shape& output, const std::vector<int>& permutation) {
  MergedLoops loops;
  const auto strides = input.strides();
  for (int i = 0; i < output.rank(); ++i) {
    loops.add(output[i], strides[static_cast<std::size_t>(permutation[static_cast<std::size_t>(i)])]);
  }
  TransposePlan plan;
  if (loops.count == 0) return plan;
  Extents output_strides{};
  std::int64_t stride = 1;
  for (int i = loops.count - 1; i >= 0; --i) {
    output_strides[static_cast<std::size_t>(i)] = stride;
    stride *= loops.extents[static_cast<std::size_t>(i)];
  }
  // The output's innermost loop makes the rows. The loop that is the input's innermost makes the columns;
  // where it is the same, there is one row of columns that are copied as they are.
  const auto innermost = static_cast<std::size_t>(loops.count - 1);
  for (std::size_t i = 0; i <= innermost; ++i) {
    const std::int64_t extent = loops.extents[i];
    if (loops.input_strides[i] == 1) {
      plan.columns = extent;
      plan.output_step = output_strides[i];
    } else if (i == innermost) {
      plan.rows = extent;
      plan.input_step = loops.input_strides[i];
    } else {
      plan.outside.add(extent, {loops.input_strides[i], output_strides[i]});
    }
  }
  return plan;
}

template <typename T>
std::unique_ptr<Kernel> bind_transpose(const BindContext& context) {
  const TransposePlan plan = plan_transpose(context.input(0).shape, context.output(0).shape,
                                            context.as<ops::Transpose>().permutation());
  const std::int64_t elements = context.output(0).shape.elements();
  const std::int64_t outside = plan.outside.elements();
  // A part is a range of the outer loops and, where they are too few, of strips of columns.
  const std::int64_t wanted = elementwise_parts(elements);
  const std::int64_t strips = outside >= wanted ? 1 : std::clamp<std::int64_t>(plan.columns / 16, 1, wanted);
  const std::int64_t pieces = outside * strips;
  const auto parts = static_cast<int>(std::clamp<std::int64_t>(pieces, 1, wanted));
  return make_kernel(
      [=](const KernelCall& call) {
        if (elements == 0) return;
        const std::int64_t end = pieces * (call.part + 1) / parts;
        for (std::int64_t piece = pieces * call.part / parts; piece < end; ++piece) {
          const std::int64_t first = plan.columns * (piece % strips) / strips;
          const std::int64_t columns = plan.columns * (piece % strips + 1) / strips - first;
          plan.outside.run(piece / strips, piece / strips + 1,
                           [&](std::int64_t, const auto& offsets, std::int64_t) {
                             const T* x = call.input<T>(0) + offsets[0] + first;
                             T* y = call.output<T>(0) + offsets[1] + first * plan.output_step;
                             if (plan.rows == 1 && plan.output_step == 1) {
                               std::memcpy(y, x, static_cast<std::size_t>(columns) * sizeof(T));
                             } else {
                               transpose_block(x, plan.input_step, y, plan.output_step, plan.rows, columns);
                             }
                           });
        }
      },
      parts);
}

std::unique_ptr<Kernel> bind_reshape(const BindContext& context) {
  return elementwise_kernel<std::byte>(static_cast<std::int64_t>(context.input(0).bytes()),
                                       [](const std::byte* x, std::byte* y, std::int64_t n) {
                                         if (x != y) std::memcpy(y, x, static_cast<std::size_t>(n));
                                       });
}

}  // namespace

void register_reshape(KernelRegistry& registry) {
  registry.add("reshape", &bind_reshape);
  registry.add("transpose", [](const BindContext& context) {
    return with_element_size(size_of(context.input(0).dtype),
                             [&](auto zero) { return bind_transpose<decltype(zero)>(context); });
  });
}

}  // namespace purine::cpu
