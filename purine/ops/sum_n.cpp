#include "purine/ops/sum_n.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor sum_n(std::span<const Tensor> tensors, std::string_view name) {
  if (tensors.empty()) throw Error("sum_n", "takes at least one tensor, got none");
  if (tensors.size() == 1) return tensors[0];
  return tensors[0].graph().add(std::make_shared<SumN>(), tensors, name).output();
}

Tensor sum_n(std::initializer_list<Tensor> tensors, std::string_view name) {
  return sum_n(std::span<const Tensor>(tensors.begin(), tensors.size()), name);
}

std::vector<TensorInfo> SumN::infer(std::span<const TensorInfo> inputs) const {
  if (inputs.empty()) throw Error(type(), "takes at least one tensor, got none");
  if (inputs[0].dtype == DType::u8) {
    throw Error(type(), "tensor 0 is " + inputs[0].text() + ", a floating, i32 or i64 tensor is needed",
                "convert it: ops::cast(x, DType::f32)");
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    check_same(type(), inputs[0], "tensor 0", inputs[i], "tensor " + std::to_string(i));
  }
  return {inputs[0]};
}

std::vector<Tensor> SumN::gradient(const GradientContext& context) const {
  return std::vector<Tensor>(static_cast<std::size_t>(context.op().input_count()),
                             context.output_gradient(0));
}

std::vector<SplitRule> SumN::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], static_cast<int>(inputs.size()), 1);
}

Cost SumN::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, static_cast<double>(inputs.size()) - 1);
}

void register_sum_n(Registry& registry) {
  const auto make = [](DType) { return std::make_shared<SumN>(); };
  const SampleInput matrix{{{3, 5}, DType::f32}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  const SampleInput integers{{{7}, DType::i64}, {Values::Kind::integer, 1000}, false};
  registry.add("sum_n", {{"one", make, {matrix}, true, true},
                         {"two", make, {matrix, matrix}, true, true},
                         {"three", make, {image, image, image}, true, true},
                         {"five", make, {matrix, matrix, matrix, matrix, matrix}, true, true},
                         {"integers", make, {integers, integers, integers}, false}});
}

}  // namespace purine::ops
