#include "purine/ops/elementwise.h"

#include "purine/ops/contract_helpers.h"

namespace purine::ops {

std::vector<TensorInfo> Elementwise::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type_, inputs, static_cast<int>(input_names_.size()));
  check_floating(type_, inputs[0], input_names_[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    check_same(type_, inputs[0], input_names_[0], inputs[i], input_names_[i]);
  }
  return {inputs[0]};
}

std::vector<SplitRule> Elementwise::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], static_cast<int>(inputs.size()), 1);
}

Cost Elementwise::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, operations_per_element_);
}

}  // namespace purine::ops
