#include "purine/ops/cast.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    // The smallest value is a power of two, and so is the one above the largest: both are exact.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From{2};
    if (std::isnan(value)) return To{0};
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= above) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
std::unique_ptr<Kernel> bind_cast(std::int64_t elements) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const From* x = call.input<From>(0);
        To* y = call.output<To>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) y[i] = convert<To>(x[i]);
      },
      parts);
}

}  // namespace

void register_cast(KernelRegistry& registry) {
  registry.add("cast", [](const BindContext& context) {
    const std::int64_t elements = context.input(0).shape.elements();
    return with_dtype(context.input(0).dtype, [&](auto from) {
      return with_dtype(context.output(0).dtype,
                        [&](auto to) { return bind_cast<decltype(to), decltype(from)>(elements); });
    });
  });
}

}  // namespace purine::cpu
