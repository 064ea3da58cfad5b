#include "purine/ops/dropout.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor dropout(Tensor x, double probability, std::string_view name) {
  return x.graph().add(std::make_shared<Dropout>(probability), {x}, name).output(0);
}

Dropout::Dropout(double probability, std::optional<Excerpt> excerpt)
    : probability_(probability), excerpt_(excerpt) {
  if (!(probability >= 0 && probability < 1)) {
    throw Error(type(), fmt::format("probability is {}, it must be at least 0 and below 1", probability));
  }
}

std::string Dropout::attributes() const {
  return fmt::format("probability={}{}", probability_, excerpt_ ? excerpt_->text() : std::string());
}

std::vector<TensorInfo> Dropout::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {inputs[0], {inputs[0].shape, DType::u8}};
}

std::vector<Tensor> Dropout::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {graph
              .add(std::make_shared<DropoutGradient>(probability_),
                   {context.output_gradient(0), context.output(1)})
              .output()};
}

std::vector<SplitRule> Dropout::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 2);
}

ContractPtr Dropout::piece(const SplitRule& rule, const Piece& piece,
                           std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<Dropout>(
      probability_, piece_excerpt(excerpt_, whole_inputs[0].shape, rule.inputs[0], rule, piece));
}

Cost Dropout::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 10);
}

std::string DropoutGradient::attributes() const {
  return fmt::format("probability={}", probability_);
}

std::vector<TensorInfo> DropoutGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "output gradient");
  const TensorInfo mask{inputs[0].shape, DType::u8};
  if (!(inputs[1] == mask)) {
    throw Error(type(), "the mask is " + inputs[1].text() + ", " + mask.text() + " is needed");
  }
  return {inputs[0]};
}

std::vector<Tensor> DropoutGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {graph.add(self(), {context.output_gradient(0), context.input(1)}).output(), Tensor()};
}

std::vector<SplitRule> DropoutGradient::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 2, 1);
}

Cost DropoutGradient::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

void register_dropout(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto make = [](double probability) {
    return [probability](DType) { return std::make_shared<Dropout>(probability); };
  };
  registry.add("dropout", {{"matrix", make(0.4), {input({7, 9})}, true, true},
                           {"image", make(0.5), {input({2, 3, 4, 5})}, true, true},
                           {"wide_image", make(0.5), {input({3, 17, 1, 1})}, true, true},
                           {"nothing", make(0), {input({3, 5})}, true, true}});
  const SampleInput mask{{{7, 9}, DType::u8}, {Values::Kind::integer, 2}, false};
  const SampleInput image_mask{{{2, 3, 4, 5}, DType::u8}, {Values::Kind::integer, 2}, false};
  registry.add("dropout_gradient", {{"matrix",
                                     [](DType) { return std::make_shared<DropoutGradient>(0.4); },
                                     {input({7, 9}), mask},
                                     true,
                                     true},
                                    {"image",
                                     [](DType) { return std::make_shared<DropoutGradient>(0.5); },
                                     {input({2, 3, 4, 5}), image_mask},
                                     true,
                                     true}});
}

}  // namespace purine::ops
