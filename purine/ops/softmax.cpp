#include "purine/ops/softmax.h"

#include <fmt/format.h>

#include "purine/ops/binary.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/unary.h"

namespace purine::ops {

Tensor softmax(Tensor x, int axis, std::string_view name) {
  axis = normal_axis("softmax", axis, x.shape().rank());
  return x.graph().add(std::make_shared<Softmax>(axis), {x}, name).output();
}

Tensor log_softmax(Tensor x, int axis, std::string_view name) {
  axis = normal_axis("log_softmax", axis, x.shape().rank());
  return x.graph().add(std::make_shared<LogSoftmax>(axis), {x}, name).output();
}

std::string AlongAxis::attributes() const {
  return fmt::format("axis={}", axis_);
}

std::vector<TensorInfo> AlongAxis::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type_, inputs, inputs_);
  check_floating(type_, inputs[0], inputs_ == 1 ? "x" : "output gradient");
  if (inputs_ == 2) check_same(type_, inputs[0], "output gradient", inputs[1], "output");
  if (axis_ >= inputs[0].shape.rank()) {
    throw Error(type_, fmt::format("axis {} of {} does not exist", axis_, inputs[0].text()));
  }
  return {inputs[0]};
}

std::vector<SplitRule> AlongAxis::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], inputs_, 1);
  rules.erase(rules.begin() + axis_);
  return rules;
}

Cost AlongAxis::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, operations_per_element_);
}

std::vector<Tensor> Softmax::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<SoftmaxGradient>(axis()), {context.output_gradient(0), context.output(0)})
          .output()};
}

// With y the softmax and g its gradient, the value is y (g - s), s = sum(g y); for an incoming u, the
// gradient by g is y (u - sum(u y)), the same operator again, and by y it is u (g - s) - g sum(u y).
std::vector<Tensor> SoftmaxGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor u = context.output_gradient(0);
  const Tensor g = context.input(0);
  const Tensor y = context.input(1);
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = graph.add(self(), {u, y}).output();
  if (context.needs(1)) {
    const Tensor centred = subtract(g, sum(multiply(g, y), {axis()}, true));
    gradients[1] = subtract(multiply(u, centred), multiply(g, sum(multiply(u, y), {axis()}, true)));
  }
  return gradients;
}

std::vector<Tensor> LogSoftmax::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<LogSoftmaxGradient>(axis()), {context.output_gradient(0), context.output(0)})
          .output()};
}

// With y the logarithm and g its gradient, the value is g - exp(y) sum(g).
std::vector<Tensor> LogSoftmaxGradient::gradient(const GradientContext& context) const {
  const Tensor u = context.output_gradient(0);
  const Tensor weighted = multiply(u, exp(context.input(1)));
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = subtract(u, sum(weighted, {axis()}, true));
  if (context.needs(1)) {
    gradients[1] = scale(multiply(weighted, sum(context.input(0), {axis()}, true)), -1);
  }
  return gradients;
}

void register_softmax(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  registry.add(
      "softmax",
      {{"rows", [](DType) { return std::make_shared<Softmax>(1); }, {input({4, 9})}, true, true},
       {"columns", [](DType) { return std::make_shared<Softmax>(0); }, {input({5, 3})}, true, true},
       {"channels", [](DType) { return std::make_shared<Softmax>(1); }, {input({2, 5, 3, 2})}, true, true},
       {"one", [](DType) { return std::make_shared<Softmax>(1); }, {input({4, 1})}, true, true}});
  registry.add(
      "log_softmax",
      {{"rows", [](DType) { return std::make_shared<LogSoftmax>(1); }, {input({4, 9})}, true, true},
       {"columns", [](DType) { return std::make_shared<LogSoftmax>(0); }, {input({5, 3})}, true, true},
       {"channels",
        [](DType) { return std::make_shared<LogSoftmax>(1); },
        {input({2, 5, 3, 2})},
        true,
        true}});
  registry.add("softmax_gradient", {{"rows",
                                     [](DType) { return std::make_shared<SoftmaxGradient>(1); },
                                     {input({4, 9}), input({4, 9})},
                                     true,
                                     true},
                                    {"middle",
                                     [](DType) { return std::make_shared<SoftmaxGradient>(1); },
                                     {input({2, 4, 3}), input({2, 4, 3})},
                                     true,
                                     true}});
  registry.add("log_softmax_gradient", {{"rows",
                                         [](DType) { return std::make_shared<LogSoftmaxGradient>(1); },
                                         {input({4, 9}), input({4, 9})},
                                         true,
                                         true},
                                        {"middle",
                                         [](DType) { return std::make_shared<LogSoftmaxGradient>(1); },
                                         {input({2, 4, 3}), input({2, 4, 3})},
                                         true,
                                         true}});
}

}  // namespace purine::ops
