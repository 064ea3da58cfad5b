#include "purine/ops/pad.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "purine/ops/concat.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor pad(Tensor x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value,
           std::string_view name) {
  return x.graph().add(std::make_shared<Pad>(std::move(before), std::move(after), value), {x}, name).output();
}

std::string Pad::attributes() const {
  return fmt::format("before={} after={} value={}", before_, after_, value_);
}

std::vector<TensorInfo> Pad::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  TensorInfo output = inputs[0];
  const auto rank = static_cast<std::size_t>(output.shape.rank());
  if (before_.size() != rank || after_.size() != rank) {
    throw Error(type(), fmt::format("{} and {} numbers are given for the {} dimensions of {}", before_.size(),
                                    after_.size(), rank, output.text()));
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (before_[i] < 0 || after_[i] < 0) {
      throw Error(type(),
                  fmt::format("dimension {} is padded by {} and {}; neither may be negative", i, before_[i],
                              after_[i]),
                  "ops::slice makes tensors smaller");
    }
    const int dimension = static_cast<int>(i);
    output.shape.set(dimension, before_[i] + output.shape[dimension] + after_[i]);
  }
  return {output};
}

std::vector<Tensor> Pad::gradient(const GradientContext& context) const {
  const Shape& shape = context.input(0).shape();
  Tensor gradient = context.output_gradient(0);
  for (int i = 0; i < shape.rank(); ++i) {
    if (gradient.shape()[i] == shape[i]) continue;
    const std::int64_t begin = before_[static_cast<std::size_t>(i)];
    gradient = slice(gradient, i, begin, begin + shape[i]);
  }
  return {gradient};
}

std::vector<SplitRule> Pad::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules;
  for (const SplitRule& rule : split_every_dimension(inputs[0], 1, 1)) {
    const auto dimension = static_cast<std::size_t>(rule.inputs[0]);
    if (before_[dimension] == 0 && after_[dimension] == 0) rules.push_back(rule);
  }
  return rules;
}

Cost Pad::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_pad(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto make = [](std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value) {
    return [=](DType) { return std::make_shared<Pad>(before, after, value); };
  };
  const SampleInput bytes{{{2, 1, 3, 3}, DType::u8}, {Values::Kind::integer, 256}, false};
  registry.add("pad", {{"image", make({0, 0, 1, 2}, {0, 0, 3, 0}, 0.5), {input({2, 3, 4, 3})}, true, true},
                       {"channels", make({0, 1, 0, 0}, {0, 2, 0, 0}, 0), {input({2, 3, 2, 2})}, true, true},
                       {"matrix", make({1, 2}, {0, 1}, -1), {input({3, 4})}, true, true},
                       {"nothing", make({0, 0}, {0, 0}, 7), {input({3, 4})}, true, true},
                       {"scalar", make({}, {}, 7), {input({})}, true, true},
                       {"bytes", make({0, 0, 1, 1}, {0, 0, 1, 1}, 128), {bytes}, false}});
}

}  // namespace purine::ops
