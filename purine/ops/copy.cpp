#include "purine/ops/copy.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor copy(Tensor x, Location location, std::string_view name) {
  if (x.location() == location) return x;
  Graph& graph = x.graph();
  const auto placement = graph.at(location);
  return graph.add(std::make_shared<Copy>(), {x}, name).output();
}

std::vector<TensorInfo> Copy::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  return {inputs[0]};
}

std::vector<Tensor> Copy::gradient(const GradientContext& context) const {
  return {copy(context.output_gradient(0), context.input(0).location(), "copy_gradient")};
}

std::vector<SplitRule> Copy::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 1);
}

Cost Copy::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_copy(Registry& registry) {
  const SampleInput matrix{{{3, 5}, DType::f32}, {}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}, {}};
  registry.add("copy", {{"matrix", [](DType) { return std::make_shared<Copy>(); }, {matrix}, true, true},
                        {"image", [](DType) { return std::make_shared<Copy>(); }, {image}, true, true}});
}

}  // namespace purine::ops
