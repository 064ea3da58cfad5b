#include "purine/ops/local_response_normalization.h"

#include <fmt/format.h>

#include <type_traits>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {
namespace {

/// The operations of one element: the neighbourhood's sum and the power, counted as 10.
double operations_per_element(const LocalResponseNormalizationOptions& options) {
  return 2.0 * static_cast<double>(options.size) + 10.0;
}

}  // namespace

Tensor local_response_normalization(Tensor x, LocalResponseNormalizationOptions options,
                                    std::string_view name) {
  return x.graph().add(std::make_shared<LocalResponseNormalization>(options), {x}, name).output();
}

std::string LocalResponseNormalizationContract::attributes() const {
  return fmt::format("size={} alpha={} beta={} k={}", options_.size, options_.alpha, options_.beta,
                     options_.k);
}

void LocalResponseNormalizationContract::check(const TensorInfo& x) const {
  check_floating(type(), x, "x");
  if (x.shape.rank() < 2) {
    throw Error(type(), fmt::format("x is {}, rank 2 or more is needed", x.text()), "x is [N, C, ...]");
  }
  if (options_.size < 1) {
    throw Error(type(), fmt::format("the size is {}, at least 1 is needed", options_.size));
  }
  if (!(options_.k > 0) || !(options_.alpha >= 0)) {
    throw Error(type(),
                fmt::format("k is {} and alpha {}; k must be above 0 and alpha not below: what is raised "
                            "to a power must be positive",
                            options_.k, options_.alpha));
  }
}

std::vector<SplitRule> LocalResponseNormalizationContract::split_rules(
    std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], static_cast<int>(inputs.size()), 1);
  rules.erase(rules.begin() + 1);  // neighbourhoods cross any division of the channels
  return rules;
}

std::vector<TensorInfo> LocalResponseNormalization::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check(inputs[0]);
  return {inputs[0]};
}

std::vector<Tensor> LocalResponseNormalization::gradient(const GradientContext& context) const {
  const auto contract = std::make_shared<LocalResponseNormalizationGradient>(options_);
  return {context.op().graph().add(contract, {context.output_gradient(0), context.input(0)}).output()};
}

Cost LocalResponseNormalization::cost(std::span<const TensorInfo> inputs,
                                      std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, operations_per_element(options_));
}

std::vector<TensorInfo> LocalResponseNormalizationGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check(inputs[1]);
  check_same(type(), inputs[0], "the output's gradient", inputs[1], "x");
  return {inputs[1]};
}

Cost LocalResponseNormalizationGradient::cost(std::span<const TensorInfo> inputs,
                                              std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 2 * operations_per_element(options_));
}

void register_local_response_normalization(Registry& registry) {
  const SampleInput image{{{2, 7, 3, 2}, DType::f32}};
  const SampleInput matrix{{{3, 6}, DType::f32}};
  const auto samples = [&]<typename T>(std::type_identity<T>, std::size_t inputs) {
    const auto contract = [](LocalResponseNormalizationOptions options) {
      return [options](DType) { return std::make_shared<T>(options); };
    };
    const bool differentiable = inputs == 1;
    return std::vector<Sample>{
        {"image", contract({.alpha = 0.5}), std::vector(inputs, image), differentiable},
        {"even_size_other_power", contract({.size = 4, .alpha = 0.3, .beta = 0.5, .k = 2}),
         std::vector(inputs, image), differentiable},
        {"wider_than_channels", contract({.size = 15, .alpha = 2}), std::vector(inputs, image),
         differentiable},
        {"matrix", contract({.size = 3, .alpha = 1}), std::vector(inputs, matrix), differentiable}};
  };
  registry.add("local_response_normalization", samples(std::type_identity<LocalResponseNormalization>{}, 1));
  registry.add("local_response_normalization_gradient",
               samples(std::type_identity<LocalResponseNormalizationGradient>{}, 2));
}

}  // namespace purine::ops
