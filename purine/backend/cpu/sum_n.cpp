#include "purine/ops/sum_n.h"

#include <algorithm>
#include <type_traits>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

// Elements that stay in the first-level cache while all inputs are added to them.
constexpr std::int64_t elements_at_a_time = 2048;

template <typename T>
void add_vectors(const T* a, const T* b, T* y, std::int64_t n) {
  using Unsigned = std::make_unsigned_t<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<Unsigned>(a[i]) + static_cast<Unsigned>(b[i]));
  }
}

template <typename T>
std::unique_ptr<Kernel> bind_sum_n(const BindContext& context,
                                   void (*add)(const T*, const T*, T*, std::int64_t)) {
  const std::int64_t elements = context.output(0).shape.elements();
  const auto inputs = static_cast<int>(context.inputs.size());
  const int parts = elementwise_parts(elements * inputs / 2);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [first, last] = part_range(elements, call.part, parts);
        for (std::int64_t begin = first; begin < last; begin += elements_at_a_time) {
          const std::int64_t count = std::min(elements_at_a_time, last - begin);
          T* y = call.output<T>(0) + begin;
          if (inputs == 1) {
            std::copy_n(call.input<T>(0) + begin, count, y);
            continue;
          }
          add(call.input<T>(0) + begin, call.input<T>(1) + begin, y, count);
          for (int i = 2; i < inputs; ++i) add(y, call.input<T>(i) + begin, y, count);
        }
      },
      parts);
}

}  // namespace

void register_sum_n(KernelRegistry& registry) {
  registry.add("sum_n", [](const BindContext& context) {
    return with_dtype(context.output(0).dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>) {
        return bind_sum_n<T>(context, arithmetic_loops<T>().add.vectors);
      } else {
        return bind_sum_n<T>(context, &add_vectors<T>);
      }
    });
  });
}

}  // namespace purine::cpu
