#include "purine/ops/loss.h"

#include <fmt/format.h>

#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/softmax.h"
#include "purine/ops/unary.h"

namespace purine::ops {
namespace {

void check_logits_and_labels(std::string_view type, const TensorInfo& logits, const TensorInfo& labels) {
  check_floating(type, logits, "logits");
  if (logits.shape.rank() != 2 || logits.shape[1] == 0) {
    throw Error(type, "logits are " + logits.text() + ", [samples, classes] is needed", "ops::flatten(x)");
  }
  if (is_floating(labels.dtype)) {
    throw Error(type, "labels are " + labels.text() + ", integers are needed: u8, i32 or i64");
  }
  if (!(labels.shape == Shape{logits.shape[0]})) {
    throw Error(
        type, "labels are " + labels.text() + ", logits " + logits.text() + "; one label a sample is needed");
  }
}

void check_scalar_gradient(std::string_view type, const TensorInfo& gradient, DType dtype) {
  if (!(gradient == TensorInfo{{}, dtype})) {
    throw Error(type,
                "output gradient is " + gradient.text() + ", " + TensorInfo{{}, dtype}.text() + " is needed");
  }
}

/// output_gradient / divisor under a shape of extents 1 that has the given rank: divided by an operator that
/// keeps to the batch when the graph is made for another batch size.
Tensor share_of(Tensor output_gradient, Shape shape, std::int64_t divisor) {
  Reduction all;
  for (int i = 0; i < shape.rank(); ++i) all.axes.push_back(i);
  return output_gradient.graph()
      .add(std::make_shared<MeanGradient>(shape, all, divisor), {output_gradient})
      .output();
}

}  // namespace

Tensor softmax_cross_entropy(Tensor logits, Tensor labels, std::string_view name) {
  return logits.graph().add(std::make_shared<SoftmaxCrossEntropy>(), {logits, labels}, name).output();
}

Tensor mean_squared_error(Tensor prediction, Tensor target, std::string_view name) {
  return prediction.graph().add(std::make_shared<MeanSquaredError>(), {prediction, target}, name).output();
}

Tensor accuracy(Tensor logits, Tensor labels, int top, std::string_view name) {
  return logits.graph().add(std::make_shared<Accuracy>(top), {logits, labels}, name).output();
}

std::string BatchShare::text() const {
  std::string text = divisor == 0 ? std::string() : fmt::format("divisor={}", divisor);
  if (first_sample != 0) text += fmt::format("{}first_sample={}", text.empty() ? "" : " ", first_sample);
  return text;
}

BatchShare BatchShare::piece(std::int64_t count, const SplitRule& rule, const Piece& piece) const {
  return {piece_divisor(divisor, count, rule, piece), first_sample + piece.begin};
}

std::vector<TensorInfo> SoftmaxCrossEntropy::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_logits_and_labels(type(), inputs[0], inputs[1]);
  return {{{}, inputs[0].dtype}};
}

std::vector<Tensor> SoftmaxCrossEntropy::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {graph
              .add(std::make_shared<SoftmaxCrossEntropyGradient>(share_),
                   {context.input(0), context.input(1), context.output_gradient(0)})
              .output(),
          Tensor()};
}

std::vector<SplitRule> SoftmaxCrossEntropy::split_rules(std::span<const TensorInfo> inputs) const {
  return {{{0, 0}, {SplitRule::partial}, inputs[0].shape[0], false}};
}

ContractPtr SoftmaxCrossEntropy::piece(const SplitRule& rule, const Piece& piece,
                                       std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<SoftmaxCrossEntropy>(share_.piece(whole_inputs[0].shape[0], rule, piece));
}

Cost SoftmaxCrossEntropy::cost(std::span<const TensorInfo> inputs,
                               std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = 12 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::vector<TensorInfo> SoftmaxCrossEntropyGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 3);
  check_logits_and_labels(type(), inputs[0], inputs[1]);
  check_scalar_gradient(type(), inputs[2], inputs[0].dtype);
  return {inputs[0]};
}

// With s the softmax of the logits and g the output gradient, the value is (s - one_hot) g / N. For an
// incoming u, the gradient by the logits is s (u - sum(u s)) g / N, and by g it is sum(u (s - one_hot)) / N.
std::vector<Tensor> SoftmaxCrossEntropyGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor logits = context.input(0);
  const Tensor u = context.output_gradient(0);
  std::vector<Tensor> gradients(3);
  if (context.needs(0)) {
    const Tensor through_softmax =
        graph.add(std::make_shared<SoftmaxGradient>(1), {u, softmax(logits, 1)}).output();
    // One entry a sample, so that the operator knows the number of samples.
    const Tensor factor = share_of(context.input(2), {logits.shape()[0], 1}, share_.divisor);
    gradients[0] = multiply(through_softmax, factor);
  }
  if (context.needs(2)) {
    const Tensor one = constant(graph, context.input(2).info(), 1);
    gradients[2] = sum(multiply(u, graph.add(self(), {logits, context.input(1), one}).output()));
  }
  return gradients;
}

std::vector<SplitRule> SoftmaxCrossEntropyGradient::split_rules(std::span<const TensorInfo> inputs) const {
  return {{{0, 0, SplitRule::whole}, {0}, inputs[0].shape[0], false}};
}

ContractPtr SoftmaxCrossEntropyGradient::piece(const SplitRule& rule, const Piece& piece,
                                               std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<SoftmaxCrossEntropyGradient>(share_.piece(whole_inputs[0].shape[0], rule, piece));
}

Cost SoftmaxCrossEntropyGradient::cost(std::span<const TensorInfo> inputs,
                                       std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 14);
}

std::string MeanSquaredError::attributes() const {
  return divisor_ == 0 ? std::string() : fmt::format("divisor={}", divisor_);
}

std::vector<TensorInfo> MeanSquaredError::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_floating(type(), inputs[0], "prediction");
  check_same(type(), inputs[0], "prediction", inputs[1], "target");
  return {{{}, inputs[0].dtype}};
}

std::vector<Tensor> MeanSquaredError::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor by_prediction = graph
                                   .add(std::make_shared<MeanSquaredErrorGradient>(divisor_),
                                        {context.input(0), context.input(1), context.output_gradient(0)})
                                   .output();
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = by_prediction;
  if (context.needs(1)) gradients[1] = scale(by_prediction, -1);
  return gradients;
}

std::vector<SplitRule> MeanSquaredError::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], 2, 1);
  for (SplitRule& rule : rules) rule.outputs[0] = SplitRule::partial;
  return rules;
}

ContractPtr MeanSquaredError::piece(const SplitRule& rule, const Piece& piece,
                                    std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<MeanSquaredError>(
      piece_divisor(divisor_, whole_inputs[0].shape.elements(), rule, piece));
}

Cost MeanSquaredError::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = 3 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string MeanSquaredErrorGradient::attributes() const {
  return divisor_ == 0 ? std::string() : fmt::format("divisor={}", divisor_);
}

std::vector<TensorInfo> MeanSquaredErrorGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 3);
  check_floating(type(), inputs[0], "prediction");
  check_same(type(), inputs[0], "prediction", inputs[1], "target");
  check_scalar_gradient(type(), inputs[2], inputs[0].dtype);
  return {inputs[0]};
}

// The value is 2 (p - t) g / elements; for an incoming u, the gradient by p is 2 u g / elements, by t its
// negative, and by g it is sum(u 2 (p - t)) / elements.
std::vector<Tensor> MeanSquaredErrorGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor u = context.output_gradient(0);
  std::vector<Tensor> gradients(3);
  if (context.needs(0) || context.needs(1)) {
    const Tensor factor = share_of(context.input(2), context.input(0).shape(), divisor_);
    const Tensor by_prediction = multiply(scale(u, 2), factor);
    if (context.needs(0)) gradients[0] = by_prediction;
    if (context.needs(1)) gradients[1] = scale(by_prediction, -1);
  }
  if (context.needs(2)) {
    const Tensor one = constant(graph, context.input(2).info(), 1);
    gradients[2] = sum(multiply(u, graph.add(self(), {context.input(0), context.input(1), one}).output()));
  }
  return gradients;
}

std::vector<SplitRule> MeanSquaredErrorGradient::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], 3, 1);
  for (SplitRule& rule : rules) rule.inputs[2] = SplitRule::whole;
  return rules;
}

ContractPtr MeanSquaredErrorGradient::piece(const SplitRule& rule, const Piece& piece,
                                            std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<MeanSquaredErrorGradient>(
      piece_divisor(divisor_, whole_inputs[0].shape.elements(), rule, piece));
}

Cost MeanSquaredErrorGradient::cost(std::span<const TensorInfo> inputs,
                                    std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 2);
}

Accuracy::Accuracy(int top, BatchShare share) : top_(top), share_(share) {
  if (top < 1) throw Error(type(), fmt::format("top is {}, it must be at least 1", top));
}

std::string Accuracy::attributes() const {
  const std::string share = share_.text();
  return fmt::format("top={}{}{}", top_, share.empty() ? "" : " ", share);
}

std::vector<TensorInfo> Accuracy::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_logits_and_labels(type(), inputs[0], inputs[1]);
  return {{{}, DType::f32}};
}

std::vector<SplitRule> Accuracy::split_rules(std::span<const TensorInfo> inputs) const {
  return {{{0, 0}, {SplitRule::partial}, inputs[0].shape[0], false}};
}

ContractPtr Accuracy::piece(const SplitRule& rule, const Piece& piece,
                            std::span<const TensorInfo> whole_inputs) const {
  return std::make_shared<Accuracy>(top_, share_.piece(whole_inputs[0].shape[0], rule, piece));
}

Cost Accuracy::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = static_cast<double>(inputs[0].shape.elements());
  return cost;
}

void register_loss(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto labels = [](std::int64_t samples, std::int64_t classes, DType dtype) {
    return SampleInput{{{samples}, dtype}, {Values::Kind::integer, classes}, false};
  };
  const SampleInput scalar{{{}, DType::f32}};
  const BatchShare share{9, 2};
  registry.add("softmax_cross_entropy", {{"i64",
                                          [](DType) { return std::make_shared<SoftmaxCrossEntropy>(); },
                                          {input({7, 5}), labels(7, 5, DType::i64)},
                                          true,
                                          true},
                                         {"i32",
                                          [](DType) { return std::make_shared<SoftmaxCrossEntropy>(); },
                                          {input({4, 10}), labels(4, 10, DType::i32)},
                                          true,
                                          true},
                                         {"u8",
                                          [](DType) { return std::make_shared<SoftmaxCrossEntropy>(); },
                                          {input({4, 3}), labels(4, 3, DType::u8)},
                                          true,
                                          true},
                                         {"share",
                                          [=](DType) { return std::make_shared<SoftmaxCrossEntropy>(share); },
                                          {input({4, 3}), labels(4, 3, DType::i64)},
                                          true,
                                          true}});
  registry.add("softmax_cross_entropy_gradient",
               {{"i64",
                 [](DType) { return std::make_shared<SoftmaxCrossEntropyGradient>(); },
                 {input({7, 5}), labels(7, 5, DType::i64), scalar},
                 true,
                 true},
                {"i32",
                 [](DType) { return std::make_shared<SoftmaxCrossEntropyGradient>(); },
                 {input({4, 3}), labels(4, 3, DType::i32), scalar},
                 true,
                 true},
                {"share",
                 [=](DType) { return std::make_shared<SoftmaxCrossEntropyGradient>(share); },
                 {input({4, 3}), labels(4, 3, DType::u8), scalar},
                 true,
                 true}});
  registry.add("mean_squared_error", {{"matrix",
                                       [](DType) { return std::make_shared<MeanSquaredError>(); },
                                       {input({4, 6}), input({4, 6})},
                                       true,
                                       true},
                                      {"image",
                                       [](DType) { return std::make_shared<MeanSquaredError>(); },
                                       {input({2, 3, 4, 5}), input({2, 3, 4, 5})},
                                       true,
                                       true},
                                      {"divisor",
                                       [](DType) { return std::make_shared<MeanSquaredError>(11); },
                                       {input({4}), input({4})},
                                       true,
                                       true}});
  registry.add("mean_squared_error_gradient",
               {{"matrix",
                 [](DType) { return std::make_shared<MeanSquaredErrorGradient>(); },
                 {input({4, 6}), input({4, 6}), scalar},
                 true,
                 true},
                {"image",
                 [](DType) { return std::make_shared<MeanSquaredErrorGradient>(); },
                 {input({2, 3, 4, 5}), input({2, 3, 4, 5}), scalar},
                 true,
                 true},
                {"divisor",
                 [](DType) { return std::make_shared<MeanSquaredErrorGradient>(11); },
                 {input({4}), input({4}), scalar},
                 true,
                 true}});
  registry.add("accuracy", {{"top_1",
                             [](DType) { return std::make_shared<Accuracy>(1); },
                             {input({20, 4}), labels(20, 4, DType::i64)},
                             false},
                            {"top_3",
                             [](DType) { return std::make_shared<Accuracy>(3); },
                             {input({20, 7}), labels(20, 7, DType::i32)},
                             false},
                            {"share",
                             [=](DType) {
                               return std::make_shared<Accuracy>(2, BatchShare{30, 5});
                             },
                             {input({20, 4}), labels(20, 4, DType::u8)},
                             false}});
}

}  // namespace purine::ops
