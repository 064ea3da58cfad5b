#include "purine/ops/unbiased_variance.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor unbiased_variance(Tensor variance, Tensor x, std::string_view name) {
  return variance.graph().add(std::make_shared<UnbiasedVariance>(), {variance, x}, name).output();
}

std::vector<TensorInfo> UnbiasedVariance::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "the variance");
  check_same_dtype(type(), inputs[0], "the variance", inputs[1], "x");
  const Shape& x = inputs[1].shape;
  if (x.rank() < 2 || !(inputs[0].shape == Shape{x[1]})) {
    throw Error(type(), fmt::format("the variance is {}, x is {}; [C] and [N, C, …] are needed",
                                    inputs[0].text(), inputs[1].text()));
  }
  return {inputs[0]};
}

std::vector<Tensor> UnbiasedVariance::gradient(const GradientContext& context) const {
  // Linear in the variance, and it is its own gradient.
  return {unbiased_variance(context.output_gradient(0), context.input(1)), {}};
}

std::vector<SplitRule> UnbiasedVariance::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  const Shape& x = inputs[1].shape;
  return {{{0, 1}, {0}, x[1], false}, {{whole, 0}, {whole}, x[0], true}};
}

Cost UnbiasedVariance::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs.first(1), outputs, 1);
}

void register_unbiased_variance(Registry& registry) {
  const auto make = [](DType) { return std::make_shared<UnbiasedVariance>(); };
  const SampleInput image{{{3, 4, 3, 2}, DType::f32}, {}, false};
  const SampleInput matrix{{{6, 5}, DType::f32}, {}, false};
  const SampleInput one_element{{{1, 3, 1, 1}, DType::f32}, {}, false};
  const auto variance = [](std::int64_t channels) {
    return SampleInput{{{channels}, DType::f32}, {Values::Kind::positive}};
  };
  registry.add("unbiased_variance", {{"image", make, {variance(4), image}, true, true},
                                     {"matrix", make, {variance(5), matrix}, true, true},
                                     {"one_element", make, {variance(3), one_element}, true, true}});
}

}  // namespace purine::ops
