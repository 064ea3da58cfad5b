#include "purine/ops/relu.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor relu(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Relu>(), {x}, name).output();
}

std::vector<TensorInfo> Relu::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {inputs[0]};
}

std::vector<Tensor> Relu::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<ReluGradient>(), {context.output_gradient(0), context.output(0)}).output()};
}

std::vector<SplitRule> Relu::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 1);
}

Cost Relu::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

std::vector<TensorInfo> ReluGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "output gradient");
  check_same(type(), inputs[0], "output gradient", inputs[1], "output");
  return {inputs[0]};
}

std::vector<Tensor> ReluGradient::gradient(const GradientContext& context) const {
  // Linear in the output gradient, with the same mask; flat in the output, off the kink.
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<ReluGradient>(), {context.output_gradient(0), context.input(1)}).output(),
      {}};
}

std::vector<SplitRule> ReluGradient::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 2, 1);
}

Cost ReluGradient::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

void register_relu(Registry& registry) {
  const SampleInput off_kinks{{{3, 5}, DType::f32}, {Values::Kind::off_kinks}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}, {Values::Kind::off_kinks}};
  registry.add("relu", {{"matrix", [](DType) { return std::make_shared<Relu>(); }, {off_kinks}, true, true},
                        {"image", [](DType) { return std::make_shared<Relu>(); }, {image}, true, true}});
  const SampleInput output{{{3, 5}, DType::f32}, {Values::Kind::off_kinks}, false};
  registry.add(
      "relu_gradient",
      {{"matrix", [](DType) { return std::make_shared<ReluGradient>(); }, {off_kinks, output}, true}});
}

}  // namespace purine::ops
