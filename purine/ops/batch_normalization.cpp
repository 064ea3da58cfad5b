#include "purine/ops/batch_normalization.h"

#include <fmt/format.h>

#include "purine/ops/binary.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"

namespace purine::ops {
namespace {

/// The elements of one channel.
std::int64_t elements_per_channel(const Shape& x) {
  std::int64_t elements = x[0];
  for (int dimension = 2; dimension < x.rank(); ++dimension) elements *= x[dimension];
  return elements;
}

void check_x(std::string_view type, const TensorInfo& x) {
  check_floating(type, x, "x");
  if (x.shape.rank() < 2) {
    throw Error(type, fmt::format("x is {}, rank 2 or more is needed", x.text()), "x is [N, C, ...]");
  }
}

/// Throws unless a parameter or statistic has one element a channel.
void check_channels(std::string_view type, const TensorInfo& x, const TensorInfo& parameter,
                    std::string_view what) {
  check_same_dtype(type, x, "x", parameter, what);
  if (!(parameter.shape == Shape{x.shape[1]})) {
    throw Error(type, fmt::format("{} is {}, x has {} channels", what, parameter.text(), x.shape[1]));
  }
}

/// A rule whose first `image_inputs` inputs and first output are like x and split along `dimension`, all
/// other tensors along `channels` (a dimension, or whole).
SplitRule rule(const Shape& x, int dimension, int image_inputs, int inputs, int channels,
               std::vector<int> outputs, bool approximate) {
  SplitRule made{std::vector<int>(static_cast<std::size_t>(inputs), channels), std::move(outputs),
                 x[dimension], approximate};
  for (int input = 0; input < image_inputs; ++input) made.inputs[static_cast<std::size_t>(input)] = dimension;
  return made;
}

/// [C] as [1, C, 1, …] of the rank of x, to be broadcast.
Tensor per_channel(Tensor parameter, const Shape& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  extents[1] = -1;
  return reshape(parameter, extents);
}

}  // namespace

BatchNormalizationResult batch_normalization_training(Tensor x, Tensor scale, Tensor shift,
                                                      BatchNormalizationOptions options,
                                                      std::string_view name) {
  const Operator op =
      x.graph().add(std::make_shared<BatchNormalizationTraining>(options), {x, scale, shift}, name);
  return {op.output(0), op.output(1), op.output(2)};
}

Tensor batch_normalization_inference(Tensor x, Tensor scale, Tensor shift, Tensor mean, Tensor variance,
                                     BatchNormalizationOptions options, std::string_view name) {
  return x.graph()
      .add(std::make_shared<BatchNormalizationInference>(options), {x, scale, shift, mean, variance}, name)
      .output();
}

std::string BatchNormalizationContract::attributes() const {
  return fmt::format("epsilon={}{}{}", options_.epsilon, options_.relu ? " relu=true" : "",
                     options_.adds ? " adds=true" : "");
}

void BatchNormalizationContract::check_epsilon() const {
  if (!(options_.epsilon >= 0)) {
    throw Error(type(), fmt::format("epsilon is {}, at least 0 is needed", options_.epsilon));
  }
}

void BatchNormalizationContract::check_gradient_inputs(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, options_.relu ? 6 : 5);
  check_epsilon();
  const TensorInfo& x = inputs[1];
  check_x(type(), x);
  check_same(type(), inputs[0], "the output's gradient", x, "x");
  check_channels(type(), x, inputs[2], "scale");
  check_channels(type(), x, inputs[3], "mean");
  check_channels(type(), x, inputs[4], "variance");
  if (options_.relu) check_channels(type(), x, inputs[5], "shift");
}

void BatchNormalizationContract::check_inputs(std::span<const TensorInfo> inputs, int count) const {
  check_input_count(type(), inputs, options_.adds ? count + 1 : count);
  check_epsilon();
  check_x(type(), inputs[0]);
  if (options_.adds) check_same(type(), inputs.back(), "what is added", inputs[0], "x");
}

SplitRule BatchNormalizationContract::with_summand(SplitRule rule, int dimension) const {
  if (options_.adds) rule.inputs.push_back(dimension);
  return rule;
}

Tensor BatchNormalizationContract::gradient_by_sum(const GradientContext& context) const {
  const Tensor gradient = context.output_gradient(0);
  if (!options_.adds || !options_.relu) return gradient;
  return context.op()
      .graph()
      .add(std::make_shared<ReluGradient>(), {gradient, context.op().output(0)})
      .output();
}

std::vector<Tensor> BatchNormalizationContract::gradient_inputs(const GradientContext& context,
                                                                Tensor output_gradient, Tensor mean,
                                                                Tensor variance) const {
  std::vector<Tensor> inputs = {output_gradient, context.input(0), context.input(1), mean, variance};
  if (gradient_options().relu) inputs.push_back(context.input(2));
  return inputs;
}

std::vector<TensorInfo> BatchNormalizationTraining::infer(std::span<const TensorInfo> inputs) const {
  check_inputs(inputs, 3);
  const TensorInfo& x = inputs[0];
  check_channels(type(), x, inputs[1], "scale");
  check_channels(type(), x, inputs[2], "shift");
  if (elements_per_channel(x.shape) == 0) {
    throw Error(type(), fmt::format("x is {}: there is nothing to average", x.text()));
  }
  return {x, inputs[1], inputs[1]};
}

std::vector<Tensor> BatchNormalizationTraining::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor x = context.input(0);
  const Tensor mean = context.output(1);
  std::vector<Tensor> gradients(3);
  if (context.output_gradient(0)) {
    const Tensor by_sum = gradient_by_sum(context);
    const Operator op = graph.add(std::make_shared<BatchNormalizationTrainingGradient>(gradient_options()),
                                  gradient_inputs(context, by_sum, mean, context.output(2)));
    gradients = op.outputs();
    if (options_.adds) gradients.push_back(by_sum);
  } else if (options_.adds) {
    gradients.emplace_back();
  }
  if (!context.needs(0)) return gradients;
  // What flows back through the statistics themselves, where they are used for more than this:
  // d mean / d x = 1 / n, d variance / d x = 2 (x - mean) / n. The operator that divides by n follows the
  // batch where the graph is made for another number of samples.
  const auto accumulate = [&](Tensor gradient) {
    gradients[0] = gradients[0] ? add(gradients[0], gradient) : gradient;
  };
  Reduction over_channel{{0}, false};
  for (int dimension = 2; dimension < x.shape().rank(); ++dimension) over_channel.axes.push_back(dimension);
  const auto spread = [&](Tensor gradient) {
    return graph.add(std::make_shared<MeanGradient>(x.shape(), over_channel), {gradient}).output();
  };
  if (context.output_gradient(1)) accumulate(spread(context.output_gradient(1)));
  if (context.output_gradient(2)) {
    const Tensor distance = subtract(x, per_channel(mean, x.shape()));
    accumulate(multiply(scale(distance, 2), spread(context.output_gradient(2))));
  }
  return gradients;
}

std::vector<SplitRule> BatchNormalizationTraining::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  const Shape& x = inputs[0].shape;
  return {with_summand(rule(x, 1, 1, 3, 0, {1, 0, 0}, false), 1),
          with_summand(rule(x, 0, 1, 3, whole, {0, whole, whole}, true), 0)};
}

Cost BatchNormalizationTraining::cost(std::span<const TensorInfo> inputs,
                                      std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = (options_.adds ? 8.0 : 7.0) * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::vector<Sharing> BatchNormalizationTraining::sharing() const {
  if (!options_.adds) return {};
  return {{3, 0, Sharing::Kind::overwrite}};
}

std::vector<TensorInfo> BatchNormalizationTrainingGradient::infer(std::span<const TensorInfo> inputs) const {
  check_gradient_inputs(inputs);
  return {inputs[1], inputs[2], inputs[2]};
}

std::vector<SplitRule> BatchNormalizationTrainingGradient::split_rules(
    std::span<const TensorInfo> inputs) const {
  constexpr int partial = SplitRule::partial;
  const Shape& x = inputs[1].shape;
  const int count = static_cast<int>(inputs.size());
  return {rule(x, 1, 2, count, 0, {1, 0, 0}, false),
          rule(x, 0, 2, count, SplitRule::whole, {0, partial, partial}, true)};
}

Cost BatchNormalizationTrainingGradient::cost(std::span<const TensorInfo> inputs,
                                              std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = 11.0 * static_cast<double>(inputs[1].shape.elements());
  return cost;
}

std::vector<TensorInfo> BatchNormalizationInference::infer(std::span<const TensorInfo> inputs) const {
  check_inputs(inputs, 5);
  const TensorInfo& x = inputs[0];
  check_channels(type(), x, inputs[1], "scale");
  check_channels(type(), x, inputs[2], "shift");
  check_channels(type(), x, inputs[3], "mean");
  check_channels(type(), x, inputs[4], "variance");
  return {x};
}

std::vector<Tensor> BatchNormalizationInference::gradient(const GradientContext& context) const {
  const Tensor by_sum = gradient_by_sum(context);
  const Operator op =
      context.op().graph().add(std::make_shared<BatchNormalizationInferenceGradient>(gradient_options()),
                               gradient_inputs(context, by_sum, context.input(3), context.input(4)));
  std::vector<Tensor> gradients = {op.output(0), op.output(1), op.output(2), {}, {}};
  if (options_.adds) gradients.push_back(by_sum);
  return gradients;
}

std::vector<Sharing> BatchNormalizationInference::sharing() const {
  std::vector<Sharing> sharing = {{0, 0, Sharing::Kind::overwrite}};
  if (options_.adds) sharing.push_back({5, 0, Sharing::Kind::overwrite});
  return sharing;
}

std::vector<SplitRule> BatchNormalizationInference::split_rules(std::span<const TensorInfo> inputs) const {
  const Shape& x = inputs[0].shape;
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < x.rank(); ++dimension) {
    const int channels = dimension == 1 ? 0 : SplitRule::whole;
    rules.push_back(with_summand(rule(x, dimension, 1, 5, channels, {dimension}, false), dimension));
  }
  return rules;
}

Cost BatchNormalizationInference::cost(std::span<const TensorInfo> inputs,
                                       std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, options_.adds ? 3 : 2);
}

std::vector<TensorInfo> BatchNormalizationInferenceGradient::infer(std::span<const TensorInfo> inputs) const {
  check_gradient_inputs(inputs);
  return {inputs[1], inputs[2], inputs[2]};
}

std::vector<SplitRule> BatchNormalizationInferenceGradient::split_rules(
    std::span<const TensorInfo> inputs) const {
  constexpr int partial = SplitRule::partial;
  const Shape& x = inputs[1].shape;
  const int count = static_cast<int>(inputs.size());
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < x.rank(); ++dimension) {
    rules.push_back(dimension == 1 ? rule(x, 1, 2, count, 0, {1, 0, 0}, false)
                                   : rule(x, dimension, 2, count, SplitRule::whole,
                                          {dimension, partial, partial}, false));
  }
  return rules;
}

Cost BatchNormalizationInferenceGradient::cost(std::span<const TensorInfo> inputs,
                                               std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = 5.0 * static_cast<double>(inputs[1].shape.elements());
  return cost;
}

void register_batch_normalization(Registry& registry) {
  struct Case {
    std::string name;
    Shape shape;
    BatchNormalizationOptions options;
  };
  std::vector<Sample> training;
  std::vector<Sample> training_gradient;
  std::vector<Sample> inference;
  std::vector<Sample> inference_gradient;
  for (const Case& sample :
       {Case{"image", {3, 4, 3, 2}, {1e-5, false}}, Case{"matrix", {6, 5}, {1e-2, false}},
        Case{"volume", {2, 3, 2, 2, 3}, {1e-3, false}}, Case{"single_channel", {2, 1, 3, 3}, {0.1, false}},
        Case{"rectified_image", {3, 4, 3, 2}, {1e-5, true}}, Case{"rectified_matrix", {6, 17}, {1e-2, true}},
        Case{"rectified_planes", {1, 2, 6, 5}, {1e-3, true}},
        Case{"added_matrix", {6, 5}, {1e-2, false, true}},
        Case{"added_and_rectified", {3, 17, 3, 2}, {1e-5, true, true}}}) {
    const std::string& name = sample.name;
    const BatchNormalizationOptions options = sample.options;
    const SampleInput x{{sample.shape, DType::f32}};
    const SampleInput parameter{{{sample.shape[1]}, DType::f32}};
    const SampleInput mean{parameter.info, {}, false};
    const SampleInput variance{parameter.info, {Values::Kind::positive}, false};
    std::vector<SampleInput> gradient_inputs = {x, x, parameter, mean, variance};
    if (options.relu) gradient_inputs.push_back(parameter);
    std::vector<SampleInput> training_inputs = {x, parameter, parameter};
    std::vector<SampleInput> inference_inputs = {x, parameter, parameter, mean, variance};
    if (options.adds) {
      training_inputs.push_back(x);
      inference_inputs.push_back(x);
    }
    training.push_back({name,
                        [options](DType) { return std::make_shared<BatchNormalizationTraining>(options); },
                        training_inputs});
    inference.push_back({name,
                         [options](DType) { return std::make_shared<BatchNormalizationInference>(options); },
                         inference_inputs});
    if (options.adds) continue;
    training_gradient.push_back(
        {name, [options](DType) { return std::make_shared<BatchNormalizationTrainingGradient>(options); },
         gradient_inputs, false});
    inference_gradient.push_back(
        {name, [options](DType) { return std::make_shared<BatchNormalizationInferenceGradient>(options); },
         gradient_inputs, false});
  }
  registry.add("batch_normalization_training", std::move(training));
  registry.add("batch_normalization_training_gradient", std::move(training_gradient));
  registry.add("batch_normalization_inference", std::move(inference));
  registry.add("batch_normalization_inference_gradient", std::move(inference_gradient));
}

}  // namespace purine::ops
