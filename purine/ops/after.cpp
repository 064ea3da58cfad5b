#include "purine/ops/after.h"

#include <algorithm>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor after(Tensor x, std::span<const Tensor> others, std::string_view name) {
  if (others.empty()) return x;
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), others.begin(), others.end());
  return x.graph().add(std::make_shared<After>(static_cast<int>(others.size())), inputs, name).output();
}

std::vector<TensorInfo> After::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1 + others_);
  return {inputs[0]};
}

std::vector<Tensor> After::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(static_cast<std::size_t>(context.op().input_count()));
  if (context.needs(0)) gradients[0] = context.output_gradient(0);
  return gradients;
}

std::vector<SplitRule> After::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], static_cast<int>(inputs.size()), 1);
  for (SplitRule& rule : rules) std::fill(rule.inputs.begin() + 1, rule.inputs.end(), SplitRule::whole);
  return rules;
}

Cost After::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs.first(1), outputs, 0);
}

void register_after(Registry& registry) {
  const auto make = [](int others) { return [others](DType) { return std::make_shared<After>(others); }; };
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  const SampleInput matrix{{{3, 5}, DType::f32}};
  const SampleInput other{{{4}, DType::f32}, {}, false};
  const SampleInput labels{{{3}, DType::i64}, {Values::Kind::integer, 10}, false};
  registry.add("after", {{"one", make(1), {image, other}, true, true},
                         {"integers", make(2), {matrix, other, labels}, true, true},
                         {"alone", make(0), {matrix}, true, true}});
}

}  // namespace purine::ops
