#include "purine/ops/check_finite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/layout.h"
#include "purine/backend/cpu/loops.h"
#include "purine/core/error.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

// NaN has a sign, which says nothing.
template <typename T>
std::string_view name_of_value(T value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "infinity" : "-infinity";
}

/// The first element, in logical order, that is NaN or infinite.
template <typename T>
Error report(const T* x, const TensorInfo& info, Layout layout, const std::string& what) {
  const Extents strides = strides_of(info.shape, layout);
  const Extents logical = info.shape.strides();
  std::vector<std::int64_t> index(static_cast<std::size_t>(info.shape.rank()));
  for (std::int64_t number = 0; number < info.shape.elements(); ++number) {
    std::int64_t offset = 0;
    std::int64_t rest = number;
    for (std::size_t i = 0; i < index.size(); ++i) {
      index[i] = rest / logical[i];
      rest %= logical[i];
      offset += index[i] * strides[i];
    }
    const T value = x[offset];
    if (std::isfinite(value)) continue;
    const std::string place = index.empty() ? std::string() : fmt::format(" at {} of {}", index, info.text());
    return Error("check_finite", fmt::format("{} is {}{}", what, name_of_value(value), place));
  }
  return Error("check_finite", what + " changed while it was checked");
}

template <typename T>
std::unique_ptr<Kernel> bind_check_finite(const BindContext& context) {
  const TensorInfo info = context.input(0);
  const Layout layout = context.input_layouts[0];
  const std::string what = context.as<ops::CheckFinite>().what();
  const std::int64_t elements = info.shape.elements();
  const auto finite = arithmetic_loops<T>().finite;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const T* x = call.input<T>(0);
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        if (!finite(x + begin, end - begin)) throw report(x, info, layout, what);
        if (x != y) std::copy(x + begin, x + end, y + begin);
      },
      parts);
}

}  // namespace

void register_check_finite(KernelRegistry& registry) {
  add_floating(registry, "check_finite", [](const BindContext& context, auto zero) {
    return bind_check_finite<decltype(zero)>(context);
  });
}

}  // namespace purine::cpu
