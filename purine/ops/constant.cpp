#include "purine/ops/constant.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor constant(Graph& graph, TensorInfo info, double value, std::string_view name) {
  return graph.add(make_constant(info, value), {}, name).output();
}

ContractPtr make_constant(TensorInfo info, double value) {
  return std::make_shared<Constant>(info, value);
}

Constant::Constant(TensorInfo info, double value) : info_(info), value_(value) {
  const bool fits = with_dtype(info.dtype, [value](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      return true;
    } else {
      // The bound above the largest value is a power of two, hence exact.
      const double low = static_cast<double>(std::numeric_limits<T>::min());
      const double above = 2 * (static_cast<double>(std::numeric_limits<T>::max() / 2) + 1);
      return std::trunc(value) == value && value >= low && value < above;
    }
  });
  if (!fits) {
    throw Error(type(), fmt::format("{} is no value of dtype {}", value, name_of(info.dtype)));
  }
}

std::string Constant::attributes() const {
  return fmt::format("info={} value={}", info_.text(), value_);
}

std::vector<TensorInfo> Constant::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 0);
  return {info_};
}

std::vector<SplitRule> Constant::split_rules(std::span<const TensorInfo>) const {
  return split_every_dimension(info_, 0, 1);
}

ContractPtr Constant::piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const {
  TensorInfo info = info_;
  info.shape.set(rule.outputs[0], piece_extent(info_.shape[rule.outputs[0]], rule, piece));
  return make_constant(info, value_);
}

Cost Constant::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_constant(Registry& registry) {
  const auto make = [](Shape shape, double value) {
    return [=](DType dtype) { return make_constant({shape, dtype}, value); };
  };
  registry.add("constant", {{"scalar", make({}, 1), {}, false},
                            {"image", make({2, 3, 4, 5}, -0.25), {}, false},
                            {"integers",
                             [](DType) {
                               return make_constant({{5}, DType::i64}, -3);
                             },
                             {},
                             false},
                            {"bytes",
                             [](DType) {
                               return make_constant({{2, 3}, DType::u8}, 255);
                             },
                             {},
                             false}});
}

}  // namespace purine::ops
