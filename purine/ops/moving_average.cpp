#include "purine/ops/moving_average.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"
#include "purine/ops/unary.h"

namespace purine::ops {

Tensor moving_average(Tensor running, Tensor value, double momentum, double factor, std::string_view name) {
  return running.graph()
      .add(std::make_shared<MovingAverage>(momentum, factor), {running, value}, name)
      .output();
}

std::string MovingAverage::attributes() const {
  return fmt::format("momentum={} factor={}", momentum_, factor_);
}

std::vector<TensorInfo> MovingAverage::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "running");
  check_same(type(), inputs[0], "running", inputs[1], "value");
  if (!(momentum_ >= 0 && momentum_ <= 1)) {
    throw Error(type(), fmt::format("the momentum is {}, from 0 to 1 is needed", momentum_),
                "it is the weight of the new value: 0.1 keeps nine tenths of the running one");
  }
  return {inputs[0]};
}

std::vector<Tensor> MovingAverage::gradient(const GradientContext& context) const {
  const Tensor gradient = context.output_gradient(0);
  return {context.needs(0) ? scale(gradient, 1 - momentum_) : Tensor{},
          context.needs(1) ? scale(gradient, momentum_ * factor_) : Tensor{}};
}

std::vector<SplitRule> MovingAverage::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 2, 1);
}

Cost MovingAverage::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 3);
}

void register_moving_average(Registry& registry) {
  const SampleInput vector{{{7}, DType::f32}};
  const SampleInput image{{{2, 3, 2, 2}, DType::f32}};
  registry.add(
      "moving_average",
      {{"tenth", [](DType) { return std::make_shared<MovingAverage>(0.1, 1); }, {vector, vector}, true, true},
       {"factor",
        [](DType) { return std::make_shared<MovingAverage>(0.25, 8.0 / 7.0); },
        {image, image},
        true,
        true}});
}

}  // namespace purine::ops
