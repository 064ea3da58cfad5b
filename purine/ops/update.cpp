#include "purine/ops/update.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor sgd_update(Tensor weight, Tensor gradient, Tensor learning_rate, SgdOptions options,
                  std::string_view name) {
  return weight.graph()
      .add(std::make_shared<SgdUpdate>(options), {weight, gradient, learning_rate}, name)
      .output();
}

MomentumResult momentum_update(Tensor weight, Tensor velocity, Tensor gradient, Tensor learning_rate,
                               MomentumOptions options, std::string_view name) {
  const Operator op = weight.graph().add(std::make_shared<MomentumUpdate>(options),
                                         {weight, velocity, gradient, learning_rate}, name);
  return {op.output(0), op.output(1)};
}

AdamResult adam_update(Tensor weight, Tensor first_moment, Tensor second_moment, Tensor gradient,
                       Tensor learning_rate, Tensor iteration, AdamOptions options, std::string_view name) {
  const Operator op =
      weight.graph().add(std::make_shared<AdamUpdate>(options),
                         {weight, first_moment, second_moment, gradient, learning_rate, iteration}, name);
  return {op.output(0), op.output(1), op.output(2)};
}

std::vector<TensorInfo> Update::infer(std::span<const TensorInfo> inputs) const {
  const std::size_t states = states_.size();
  check_input_count(type_, inputs, static_cast<int>(states) + (iteration_ ? 3 : 2));
  check_floating(type_, inputs[0], states_[0]);
  for (std::size_t i = 1; i < states; ++i) check_same(type_, inputs[0], states_[0], inputs[i], states_[i]);
  check_same(type_, inputs[0], states_[0], inputs[states], "gradient");
  const TensorInfo& rate = inputs[states + 1];
  if (rate.shape.rank() != 0 || (rate.dtype != DType::f32 && rate.dtype != inputs[0].dtype)) {
    throw Error(type_, "the learning rate is " + rate.text() + ", f32[] is needed");
  }
  if (iteration_ && !(inputs[states + 2] == TensorInfo{{}, DType::i64})) {
    throw Error(type_, "the iteration is " + inputs[states + 2].text() + ", i64[] is needed",
                "ops::iteration(graph)");
  }
  return std::vector<TensorInfo>(states, inputs[0]);
}

std::vector<SplitRule> Update::split_rules(std::span<const TensorInfo> inputs) const {
  const int states = static_cast<int>(states_.size());
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], states + 1, states);
  for (SplitRule& rule : rules) rule.inputs.resize(inputs.size(), SplitRule::whole);
  return rules;
}

Cost Update::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, operations_per_element_ / static_cast<double>(outputs.size()));
}

std::vector<Sharing> Update::sharing() const {
  std::vector<Sharing> sharing;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    sharing.push_back({i, i, Sharing::Kind::overwrite});
  }
  return sharing;
}

std::string SgdUpdate::attributes() const {
  return fmt::format("weight_decay={}", options_.weight_decay);
}

std::string MomentumUpdate::attributes() const {
  return fmt::format("momentum={} weight_decay={} nesterov={}", options_.momentum, options_.weight_decay,
                     options_.nesterov);
}

std::string AdamUpdate::attributes() const {
  return fmt::format("beta1={} beta2={} epsilon={} weight_decay={} decoupled={}", options_.beta1,
                     options_.beta2, options_.epsilon, options_.weight_decay, options_.decoupled);
}

void register_update(Registry& registry) {
  const SampleInput tensor{{{4, 5}, DType::f32}, {}, false};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}, {}, false};
  const SampleInput positive{{{4, 5}, DType::f32}, {Values::Kind::positive}, false};
  const SampleInput rate{{{}, DType::f32}, {Values::Kind::positive}, false};
  const SampleInput iteration{{{}, DType::i64}, {Values::Kind::integer, 20}, false};
  const auto sgd = [](SgdOptions options) {
    return [=](DType) { return std::make_shared<SgdUpdate>(options); };
  };
  const auto momentum = [](MomentumOptions options) {
    return [=](DType) { return std::make_shared<MomentumUpdate>(options); };
  };
  const auto adam = [](AdamOptions options) {
    return [=](DType) { return std::make_shared<AdamUpdate>(options); };
  };
  registry.add("sgd_update", {{"plain", sgd({}), {tensor, tensor, rate}, false},
                              {"decay", sgd({0.01}), {image, image, rate}, false}});
  registry.add("momentum_update",
               {{"plain", momentum({0.9}), {tensor, tensor, tensor, rate}, false},
                {"decay", momentum({0.5, 0.01}), {image, image, image, rate}, false},
                {"nesterov", momentum({0.9, 0.01, true}), {tensor, tensor, tensor, rate}, false}});
  registry.add(
      "adam_update",
      {{"plain", adam({}), {tensor, tensor, positive, tensor, rate, iteration}, false},
       {"decay", adam({0.8, 0.99, 1e-6, 0.1}), {tensor, tensor, positive, tensor, rate, iteration}, false},
       {"decoupled",
        adam({0.9, 0.999, 1e-8, 0.1, true}),
        {tensor, tensor, positive, tensor, rate, iteration},
        false}});
}

}  // namespace purine::ops
