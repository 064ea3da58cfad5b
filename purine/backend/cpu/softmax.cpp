#include "purine/ops/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/layout.h"
#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/softmax_row.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

constexpr std::int64_t tile_columns = 64;

template <typename T>
struct Loops {
  const ArithmeticLoops<T>& arithmetic = arithmetic_loops<T>();
  const ReduceLoops<T>& reduce = reduce_loops<T>();
  const MathLoops<T>& math = math_loops<T>();
};

/// Where the elements along the axis lie `inner` apart, up to `tile_columns` neighbouring columns are
/// computed side by side: `columns` of them, whose elements of step k begin at k * inner.
template <typename T>
void softmax_columns(const Loops<T>& loops, const T* x, T* y, std::int64_t extent, std::int64_t inner,
                     std::int64_t columns, bool logarithm) {
  std::array<T, tile_columns> largest;
  std::array<T, tile_columns> row;
  std::array<double, tile_columns> totals{};
  std::copy_n(x, columns, largest.begin());
  for (std::int64_t k = 1; k < extent; ++k) {
    loops.arithmetic.maximum(largest.data(), x + k * inner, largest.data(), columns);
  }
  for (std::int64_t k = 0; k < extent; ++k) {
    T* powers = logarithm ? row.data() : y + k * inner;
    loops.arithmetic.subtract.vectors(x + k * inner, largest.data(), powers, columns);
    loops.math.exp(powers, powers, columns);
    loops.reduce.accumulate(powers, totals.data(), columns);
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    const double total = totals[static_cast<std::size_t>(i)];
    row[static_cast<std::size_t>(i)] = static_cast<T>(logarithm ? std::log(total) : 1 / total);
  }
  for (std::int64_t k = 0; k < extent; ++k) {
    T* at = y + k * inner;
    if (logarithm) {
      loops.arithmetic.subtract.vectors(x + k * inner, largest.data(), at, columns);
      loops.arithmetic.subtract.vectors(at, row.data(), at, columns);
    } else {
      loops.arithmetic.multiply.vectors(at, row.data(), at, columns);
    }
  }
}

template <typename T>
void softmax_gradient_row(const Loops<T>& loops, const T* gradient, const T* output, T* y,
                          std::int64_t extent) {
  const auto dot = static_cast<T>(loops.reduce.dot(gradient, output, extent));
  loops.arithmetic.subtract.vector_scalar(gradient, dot, y, extent);
  loops.arithmetic.multiply.vectors(y, output, y, extent);
}

template <typename T>
void softmax_gradient_columns(const Loops<T>& loops, const T* gradient, const T* output, T* y,
                              std::int64_t extent, std::int64_t inner, std::int64_t columns) {
  std::array<double, tile_columns> dots{};
  std::array<T, tile_columns> row;
  for (std::int64_t k = 0; k < extent; ++k) {
    loops.reduce.accumulate_products(gradient + k * inner, output + k * inner, dots.data(), columns);
  }
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<T>(dots[i]);
  for (std::int64_t k = 0; k < extent; ++k) {
    T* at = y + k * inner;
    loops.arithmetic.subtract.vectors(gradient + k * inner, row.data(), at, columns);
    loops.arithmetic.multiply.vectors(at, output + k * inner, at, columns);
  }
}

template <typename T>
void log_softmax_gradient_row(const Loops<T>& loops, const T* gradient, const T* output, T* y,
                              std::int64_t extent) {
  const auto total = static_cast<T>(loops.reduce.sum(gradient, extent));
  std::array<T, tile_columns> powers;
  for (std::int64_t k = 0; k < extent; k += tile_columns) {
    const std::int64_t count = std::min(tile_columns, extent - k);
    loops.math.exp(output + k, powers.data(), count);
    loops.arithmetic.multiply.vector_scalar(powers.data(), total, powers.data(), count);
    loops.arithmetic.subtract.vectors(gradient + k, powers.data(), y + k, count);
  }
}

template <typename T>
void log_softmax_gradient_columns(const Loops<T>& loops, const T* gradient, const T* output, T* y,
                                  std::int64_t extent, std::int64_t inner, std::int64_t columns) {
  std::array<double, tile_columns> totals{};
  std::array<T, tile_columns> row;
  std::array<T, tile_columns> powers;
  for (std::int64_t k = 0; k < extent; ++k)
    loops.reduce.accumulate(gradient + k * inner, totals.data(), columns);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<T>(totals[i]);
  for (std::int64_t k = 0; k < extent; ++k) {
    loops.math.exp(output + k * inner, powers.data(), columns);
    loops.arithmetic.multiply.vectors(powers.data(), row.data(), powers.data(), columns);
    loops.arithmetic.subtract.vectors(gradient + k * inner, powers.data(), y + k * inner, columns);
  }
}

/// A kernel of lines along the axis. `row(offset)` computes the line that begins there and lies side by side;
/// `columns(offset, inner, count)` computes `count` neighbouring lines.
template <typename Row, typename Columns>
std::unique_ptr<Kernel> bind_lines(const BindContext& context, Row row, Columns columns) {
  const Shape& shape = context.input(0).shape;
  const AxisView view(shape, context.input_layouts[0],
                      static_cast<const ops::AlongAxis&>(context.contract).axis());
  const std::int64_t tiles = (view.inner + tile_columns - 1) / tile_columns;
  const std::int64_t groups = view.outer * tiles;
  const auto parts =
      static_cast<int>(std::clamp<std::int64_t>(groups, 1, elementwise_parts(4 * shape.elements())));
  return make_kernel(
      [=](const KernelCall& call) {
        if (view.extent == 0) return;
        const std::int64_t end = groups * (call.part + 1) / parts;
        for (std::int64_t group = groups * call.part / parts; group < end; ++group) {
          if (view.inner == 1) {
            row(call, group * view.extent, view.extent);
          } else {
            const std::int64_t first = group % tiles * tile_columns;
            columns(call, group / tiles * view.extent * view.inner + first, view.extent, view.inner,
                    std::min(tile_columns, view.inner - first));
          }
        }
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_softmax(const BindContext& context, bool logarithm) {
  const Loops<T> loops;
  return bind_lines(
      context,
      [=](const KernelCall& call, std::int64_t at, std::int64_t extent) {
        if (logarithm) {
          log_softmax_row(call.input<T>(0) + at, call.output<T>(0) + at, extent);
        } else {
          softmax_row(call.input<T>(0) + at, call.output<T>(0) + at, extent);
        }
      },
      [=](const KernelCall& call, std::int64_t at, std::int64_t extent, std::int64_t inner,
          std::int64_t count) {
        softmax_columns(loops, call.input<T>(0) + at, call.output<T>(0) + at, extent, inner, count,
                        logarithm);
      });
}

}  // namespace

void register_softmax(KernelRegistry& registry) {
  add_floating(registry, "softmax", [](const BindContext& context, auto zero) {
    return bind_softmax<decltype(zero)>(context, false);
  });
  add_floating(registry, "log_softmax", [](const BindContext& context, auto zero) {
    return bind_softmax<decltype(zero)>(context, true);
  });
  add_floating(registry, "softmax_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const Loops<T> loops;
    return bind_lines(
        context,
        [=](const KernelCall& call, std::int64_t at, std::int64_t extent) {
          softmax_gradient_row(loops, call.input<T>(0) + at, call.input<T>(1) + at, call.output<T>(0) + at,
                               extent);
        },
        [=](const KernelCall& call, std::int64_t at, std::int64_t extent, std::int64_t inner,
            std::int64_t count) {
          softmax_gradient_columns(loops, call.input<T>(0) + at, call.input<T>(1) + at,
                                   call.output<T>(0) + at, extent, inner, count);
        });
  });
  add_floating(registry, "log_softmax_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const Loops<T> loops;
    return bind_lines(
        context,
        [=](const KernelCall& call, std::int64_t at, std::int64_t extent) {
          log_softmax_gradient_row(loops, call.input<T>(0) + at, call.input<T>(1) + at,
                                   call.output<T>(0) + at, extent);
        },
        [=](const KernelCall& call, std::int64_t at, std::int64_t extent, std::int64_t inner,
            std::int64_t count) {
          log_softmax_gradient_columns(loops, call.input<T>(0) + at, call.input<T>(1) + at,
                                       call.output<T>(0) + at, extent, inner, count);
        });
  });
}

}  // namespace purine::cpu
