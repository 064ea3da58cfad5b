#include "purine/ops/sibling_convolution.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/convolution.h"
#include "purine/ops/registry.h"

namespace purine::ops {
namespace {

/// With more, not every input of a gradient had a bit of its own in a LayoutRule.
constexpr std::size_t most_siblings = 15;

/// Throws unless a weight is [O, channels, 1, 1] with any O.
void check_weight(std::string_view type, const TensorInfo& weight, const TensorInfo& image,
                  std::int64_t channels) {
  check_same_dtype(type, image, "image", weight, "weight");
  const bool fits =
      weight.shape.rank() == 4 && weight.shape[1] == channels && weight.shape[2] == 1 && weight.shape[3] == 1;
  if (!fits) {
    throw Error(type, fmt::format("weight is {}, [O, {}, 1, 1] is needed", weight.text(), channels));
  }
}

double operations_of(const Shape& result, const Shape& weight) {
  return 2.0 * static_cast<double>(result.elements()) * static_cast<double>(weight[1]);
}

std::shared_ptr<Conv2dWeightGradient> weight_gradient() {
  return std::make_shared<Conv2dWeightGradient>(Conv2dOptions{}, std::array<std::int64_t, 2>{1, 1}, false);
}

}  // namespace

std::vector<Tensor> sibling_conv2d(Tensor image, std::span<const Tensor> weights, std::string_view name) {
  std::vector<Tensor> inputs = {image};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return image.graph().add(std::make_shared<SiblingConv2d>(), inputs, name).outputs();
}

std::vector<TensorInfo> SiblingConv2d::infer(std::span<const TensorInfo> inputs) const {
  if (inputs.size() < 2 || inputs.size() > 1 + most_siblings) {
    throw Error(type(), fmt::format("there are {} weights, 1 to {} are needed",
                                    inputs.empty() ? 0 : inputs.size() - 1, most_siblings));
  }
  check_image(type(), inputs[0], "image");
  const Shape& image = inputs[0].shape;
  std::vector<TensorInfo> outputs;
  for (const TensorInfo& weight : inputs.subspan(1)) {
    check_weight(type(), weight, inputs[0], image[1]);
    outputs.push_back({{image[0], weight.shape[0], image[2], image[3]}, inputs[0].dtype});
  }
  return outputs;
}

std::vector<Tensor> SiblingConv2d::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const int siblings = context.op().output_count();
  std::vector<Tensor> gradients(static_cast<std::size_t>(siblings + 1));
  std::vector<Tensor> output_gradients;
  std::vector<Tensor> weights;
  for (int i = 0; i < siblings; ++i) {
    const Tensor output_gradient = context.output_gradient(i);
    if (!output_gradient) continue;
    output_gradients.push_back(output_gradient);
    weights.push_back(context.input(i + 1));
    if (!context.needs(i + 1)) continue;
    gradients[static_cast<std::size_t>(i + 1)] =
        graph.add(weight_gradient(), {context.input(0), output_gradient}).output();
  }
  if (context.needs(0)) {
    const auto contract = std::make_shared<SiblingConv2dInputGradient>(weights.size(), false);
    output_gradients.insert(output_gradients.end(), weights.begin(), weights.end());
    gradients[0] = graph.add(contract, output_gradients).output();
  }
  return gradients;
}

std::vector<SplitRule> SiblingConv2d::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<int> whole_weights(inputs.size(), SplitRule::whole);
  whole_weights[0] = 0;
  const std::vector<int> by_channel(inputs.size(), 1);
  const std::size_t siblings = inputs.size() - 1;
  return {{whole_weights, std::vector<int>(siblings, 0), inputs[0].shape[0], false},
          {by_channel, std::vector<int>(siblings, SplitRule::partial), inputs[0].shape[1], false}};
}

Cost SiblingConv2d::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    cost.operations += operations_of(outputs[i].shape, inputs[i + 1].shape);
  }
  return cost;
}

std::string SiblingConv2dInputGradient::attributes() const {
  return fmt::format("siblings={} adds={}", siblings_, adds_);
}

std::vector<TensorInfo> SiblingConv2dInputGradient::infer(std::span<const TensorInfo> inputs) const {
  if (siblings_ < 1 || siblings_ > most_siblings) {
    throw Error(type(), fmt::format("there are {} results, 1 to {} are needed", siblings_, most_siblings));
  }
  check_input_count(type(), inputs, static_cast<int>(2 * siblings_ + (adds_ ? 1 : 0)));
  const TensorInfo& first = inputs[0];
  check_image(type(), first, "the output's gradient");
  const TensorInfo& first_weight = inputs[siblings_];
  const std::int64_t channels = first_weight.shape.rank() == 4 ? first_weight.shape[1] : 0;
  const TensorInfo image{{first.shape[0], channels, first.shape[2], first.shape[3]}, first.dtype};
  for (std::size_t i = 0; i < siblings_; ++i) {
    const TensorInfo& weight = inputs[siblings_ + i];
    check_weight(type(), weight, first, channels);
    const TensorInfo result{{first.shape[0], weight.shape[0], first.shape[2], first.shape[3]}, first.dtype};
    check_same(type(), inputs[i], "an output's gradient", result, "the convolution's result");
  }
  if (adds_) check_same(type(), inputs.back(), "the gradient from elsewhere", image, "the image");
  return {image};
}

std::vector<Tensor> SiblingConv2dInputGradient::gradient(const GradientContext& context) const {
  // Linear in the outputs' gradients, and in the weights: each summand's transpose is a convolution.
  Graph& graph = context.op().graph();
  const Tensor gradient = context.output_gradient(0);
  std::vector<Tensor> gradients(static_cast<std::size_t>(context.op().input_count()));
  for (std::size_t i = 0; i < siblings_; ++i) {
    const int output = static_cast<int>(i);
    const int weight = static_cast<int>(siblings_ + i);
    if (context.needs(output)) gradients[i] = conv2d(gradient, context.input(weight));
    if (context.needs(weight)) {
      gradients[siblings_ + i] = graph.add(weight_gradient(), {gradient, context.input(output)}).output();
    }
  }
  if (adds_) gradients.back() = gradient;
  return gradients;
}

std::vector<SplitRule> SiblingConv2dInputGradient::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<int> by_sample(inputs.size(), 0);
  std::vector<int> by_channel(inputs.size(), 1);
  for (std::size_t i = 0; i < siblings_; ++i) {
    by_sample[siblings_ + i] = SplitRule::whole;
    by_channel[i] = SplitRule::whole;
  }
  return {{by_sample, {0}, inputs[0].shape[0], false}, {by_channel, {1}, inputs[siblings_].shape[1], false}};
}

ContractPtr SiblingConv2dInputGradient::piece(const SplitRule&, const Piece&,
                                              std::span<const TensorInfo>) const {
  return self();
}

Cost SiblingConv2dInputGradient::cost(std::span<const TensorInfo> inputs,
                                      std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  for (std::size_t i = 0; i < siblings_; ++i) {
    cost.operations += operations_of(inputs[i].shape, inputs[siblings_ + i].shape);
  }
  if (adds_) cost.operations += static_cast<double>(outputs[0].shape.elements());
  return cost;
}

std::vector<Sharing> SiblingConv2dInputGradient::sharing() const {
  if (!adds_) return {};
  return {{static_cast<int>(2 * siblings_), 0, Sharing::Kind::overwrite}};
}

LayoutRule SiblingConv2dInputGradient::layouts() const {
  std::uint32_t images = (1U << siblings_) - 1;
  if (adds_) images |= 1U << (2 * siblings_);
  return {images, 1, true};
}

void register_sibling_convolution(Registry& registry) {
  const auto image = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto forward = [](DType) { return std::make_shared<SiblingConv2d>(); };
  registry.add("sibling_conv2d",
               {{"three",
                 forward,
                 {image({2, 5, 3, 4}), image({3, 5, 1, 1}), image({1, 5, 1, 1}), image({17, 5, 1, 1})},
                 true,
                 true},
                {"sixteens",
                 forward,
                 {image({1, 16, 2, 3}), image({16, 16, 1, 1}), image({64, 16, 1, 1})},
                 true,
                 true},
                {"one", forward, {image({3, 2, 2, 2}), image({4, 2, 1, 1})}, true, true}});
  const auto backward = [](std::size_t siblings, bool adds) {
    return [=](DType) { return std::make_shared<SiblingConv2dInputGradient>(siblings, adds); };
  };
  registry.add("sibling_conv2d_input_gradient",
               {{"three",
                 backward(3, false),
                 {image({2, 3, 3, 4}), image({2, 1, 3, 4}), image({2, 17, 3, 4}), image({3, 5, 1, 1}),
                  image({1, 5, 1, 1}), image({17, 5, 1, 1})},
                 true,
                 true},
                {"sixteens_with_another",
                 backward(2, true),
                 {image({1, 16, 2, 3}), image({1, 32, 2, 3}), image({16, 16, 1, 1}), image({32, 16, 1, 1}),
                  image({1, 16, 2, 3})},
                 true,
                 true},
                {"with_another",
                 backward(2, true),
                 {image({3, 4, 2, 2}), image({3, 2, 2, 2}), image({4, 3, 1, 1}), image({2, 3, 1, 1}),
                  image({3, 3, 2, 2})},
                 true,
                 true}});
}

}  // namespace purine::ops
