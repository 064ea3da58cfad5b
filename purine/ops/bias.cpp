#include "purine/ops/bias.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor bias(Tensor x, Tensor b, int axis, std::string_view name) {
  return x.graph()
      .add(std::make_shared<Bias>(normal_axis("bias", axis, x.shape().rank())), {x, b}, name)
      .output();
}

std::string Bias::attributes() const {
  return fmt::format("axis={}", axis_);
}

std::vector<TensorInfo> Bias::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "x");
  if (axis_ >= inputs[0].shape.rank()) {
    throw Error(type(), fmt::format("axis {} of {} does not exist", axis_, inputs[0].text()));
  }
  const TensorInfo expected{{inputs[0].shape[axis_]}, inputs[0].dtype};
  if (!(inputs[1] == expected)) {
    throw Error(type(), fmt::format("the bias is {}, x is {}; along axis {} a bias of {} is needed",
                                    inputs[1].text(), inputs[0].text(), axis_, expected.text()));
  }
  return {inputs[0]};
}

std::vector<Tensor> Bias::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(2);
  const Tensor incoming = context.output_gradient(0);
  if (context.needs(0)) gradients[0] = incoming;
  if (context.needs(1)) {
    std::vector<int> axes;
    for (int i = 0; i < incoming.shape().rank(); ++i) {
      if (i != axis_) axes.push_back(i);
    }
    gradients[1] = axes.empty() ? incoming : sum(incoming, axes, false, "bias_gradient");
  }
  return gradients;
}

std::vector<SplitRule> Bias::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], 2, 1);
  for (int i = 0; i < inputs[0].shape.rank(); ++i) {
    rules[static_cast<std::size_t>(i)].inputs[1] = i == axis_ ? 0 : SplitRule::whole;
  }
  return rules;
}

Cost Bias::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

void register_bias(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto with_axis = [](int axis) { return [axis](DType) { return std::make_shared<Bias>(axis); }; };
  registry.add("bias", {{"image", with_axis(1), {input({2, 3, 4, 5}), input({3})}, true, true},
                        {"matrix", with_axis(1), {input({4, 7}), input({7})}, true, true},
                        {"sequence", with_axis(2), {input({2, 3, 5}), input({5})}, true, true},
                        {"rows", with_axis(0), {input({3, 4}), input({3})}, true, true},
                        {"width", with_axis(3), {input({2, 3, 4, 5}), input({5})}, true, true},
                        {"vector", with_axis(0), {input({6}), input({6})}, true, true}});
}

}  // namespace purine::ops
