#include "purine/ops/check_finite.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor check_finite(Tensor x, std::string what, std::string_view name) {
  return x.graph().add(std::make_shared<CheckFinite>(std::move(what)), {x}, name).output();
}

std::vector<TensorInfo> CheckFinite::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {inputs[0]};
}

std::vector<Tensor> CheckFinite::gradient(const GradientContext& context) const {
  return {context.output_gradient(0)};
}

std::vector<SplitRule> CheckFinite::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 1);
}

Cost CheckFinite::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

void register_check_finite(Registry& registry) {
  const auto make = [](DType) { return std::make_shared<CheckFinite>("x"); };
  const SampleInput matrix{{{3, 5}, DType::f32}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  registry.add("check_finite",
               {{"matrix", make, {matrix}, true, true}, {"image", make, {image}, true, true}});
}

}  // namespace purine::ops
