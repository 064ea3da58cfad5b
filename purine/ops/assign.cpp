#include "purine/ops/assign.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

std::vector<TensorInfo> Assign::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_same(type(), inputs[0], "the variable", inputs[1], "its next value");
  return {inputs[0]};
}

std::vector<Tensor> Assign::gradient(const GradientContext& context) const {
  return {{}, context.output_gradient(0)};
}

std::vector<SplitRule> Assign::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 2, 1);
}

Cost Assign::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs.subspan(1), outputs, 0);
}

void register_assign(Registry& registry) {
  const SampleInput variable{{{3, 5}, DType::f32}, {}, false};
  const SampleInput value{{{3, 5}, DType::f32}, {}};
  registry.add("assign", {{"matrix", [](DType) { return std::make_shared<Assign>(); }, {variable, value}}});
}

}  // namespace purine::ops
