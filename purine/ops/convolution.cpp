#include "purine/ops/convolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/reshape.h"

namespace purine::ops {
namespace {

constexpr std::string_view shapes_hint =
    "image is [N, C, H, W], weight is [output channels, C / groups, height, width]";

void check_rank_4(std::string_view type, const TensorInfo& info, std::string_view what) {
  if (info.shape.rank() != 4) {
    throw Error(type, fmt::format("{} is {}, rank 4 is needed", what, info.text()), shapes_hint);
  }
}

void check_groups(std::string_view type, const Conv2dOptions& options, std::int64_t output_channels) {
  if (options.groups < 1) {
    throw Error(type, fmt::format("there are {} groups, at least 1 is needed", options.groups));
  }
  if (output_channels < 1 || output_channels % options.groups != 0) {
    throw Error(type, fmt::format("{} output channels do not divide into {} groups", output_channels,
                                  options.groups));
  }
}

/// Throws where an image of N samples would have no elements though N may be above 0.
void check_elements(std::string_view type, std::int64_t channels, std::array<std::int64_t, 2> extents) {
  if (channels < 1 || extents[0] < 1 || extents[1] < 1) {
    throw Error(type,
                fmt::format("an image has {} channels of {} x {} elements, at least 1 of each is needed",
                            channels, extents[0], extents[1]));
  }
}

/// The result's extents for an image's and a kernel's; throws where they do not fit.
std::array<std::int64_t, 2> result_extents(std::string_view type, const Conv2dOptions& options,
                                           std::array<std::int64_t, 2> image,
                                           std::array<std::int64_t, 2> kernel) {
  const Window vertical = options.vertical(kernel[0]);
  const Window horizontal = options.horizontal(kernel[1]);
  check_window(type, vertical, "vertically");
  check_window(type, horizontal, "horizontally");
  return {checked_positions(type, vertical, image[0], "vertically"),
          checked_positions(type, horizontal, image[1], "horizontally")};
}

/// Throws unless an output's gradient has the extents that the image and the kernel give.
void check_gradient_extents(std::string_view type, const Conv2dOptions& options,
                            std::array<std::int64_t, 2> image, std::array<std::int64_t, 2> kernel,
                            const Shape& output_gradient) {
  const auto [height, width] = result_extents(type, options, image, kernel);
  if (output_gradient[2] != height || output_gradient[3] != width) {
    throw Error(type,
                fmt::format("the output's gradient is {} x {}, an image of {} x {} and a kernel of {} x {} "
                            "give {} x {}",
                            output_gradient[2], output_gradient[3], image[0], image[1], kernel[0], kernel[1],
                            height, width));
  }
}

/// All three operators do one multiply-add for every element of the result and every weight of its channel.
double operations(const Shape& result, const Shape& weight) {
  return 2.0 * static_cast<double>(result.elements()) *
         static_cast<double>(weight[1] * weight[2] * weight[3]);
}

Conv2dOptions with_groups(Conv2dOptions options, std::int64_t groups) {
  options.groups = groups;
  return options;
}

}  // namespace

Tensor conv2d(Tensor image, Tensor weight, Tensor bias, Conv2dOptions options, std::string_view name) {
  const auto contract = std::make_shared<Conv2d>(options);
  Graph& graph = image.graph();
  if (!bias) return graph.add(contract, {image, weight}, name).output();
  return graph.add(contract, {image, weight, bias}, name).output();
}

std::string Conv2dContract::attributes() const {
  return fmt::format("stride={} padding={} dilation={} groups={}", options_.stride, options_.padding,
                     options_.dilation, options_.groups);
}

std::string Conv2d::attributes() const {
  return Conv2dContract::attributes() + (adds_bias_ ? "" : " adds_bias=false");
}

std::vector<TensorInfo> Conv2d::infer(std::span<const TensorInfo> inputs) const {
  if (inputs.size() != 3) check_input_count(type(), inputs, 2);
  const Shape& image = inputs[0].shape;
  const Shape& weight = inputs[1].shape;
  check_floating(type(), inputs[0], "image");
  check_rank_4(type(), inputs[0], "image");
  check_rank_4(type(), inputs[1], "weight");
  check_same_dtype(type(), inputs[0], "image", inputs[1], "weight");
  check_groups(type(), options_, weight[0]);
  check_elements(type(), image[1], {image[2], image[3]});
  if (weight[1] * options_.groups != image[1]) {
    const std::string groups =
        options_.groups == 1 ? "" : fmt::format(" in each of {} groups", options_.groups);
    throw Error(type(),
                fmt::format("weight has {} input channels{}, image has {}", weight[1], groups, image[1]),
                shapes_hint);
  }
  if (inputs.size() == 3) {
    check_same_dtype(type(), inputs[0], "image", inputs[2], "bias");
    if (!(inputs[2].shape == Shape{weight[0]})) {
      throw Error(type(), fmt::format("bias is {}, the weight's {} output channels need [{}]",
                                      inputs[2].text(), weight[0], weight[0]));
    }
  }
  const auto [height, width] = result_extents(type(), options_, {image[2], image[3]}, {weight[2], weight[3]});
  return {{{image[0], weight[0], height, width}, inputs[0].dtype}};
}

std::vector<Tensor> Conv2d::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor output_gradient = context.output_gradient(0);
  const Tensor image = context.input(0);
  const Tensor weight = context.input(1);
  std::vector<Tensor> gradients(static_cast<std::size_t>(context.op().input_count()));
  if (context.needs(0)) {
    const auto contract = std::make_shared<Conv2dInputGradient>(
        options_, std::array<std::int64_t, 2>{image.shape()[2], image.shape()[3]});
    gradients[0] = graph.add(contract, {output_gradient, weight}).output();
  }
  const bool needs_bias = gradients.size() == 3 && adds_bias_ && context.needs(2);
  if (context.needs(1) || needs_bias) {
    const auto contract = std::make_shared<Conv2dWeightGradient>(
        options_, std::array<std::int64_t, 2>{weight.shape()[2], weight.shape()[3]}, needs_bias);
    const Operator op = graph.add(contract, {image, output_gradient});
    gradients[1] = op.output(0);
    if (needs_bias) gradients[2] = op.output(1);
  }
  return gradients;
}

std::vector<SplitRule> Conv2d::split_rules(std::span<const TensorInfo> inputs) const {
  const bool has_bias = inputs.size() == 3;
  const auto rule = [&](int image, int weight, int bias, int output, std::int64_t units) {
    std::vector<int> dimensions{image, weight};
    if (has_bias) dimensions.push_back(bias);
    return SplitRule{dimensions, {output}, units, false};
  };
  constexpr int whole = SplitRule::whole;
  std::vector<SplitRule> rules{rule(0, whole, whole, 0, inputs[0].shape[0])};
  if (options_.groups == 1) {
    rules.push_back(rule(whole, 0, 0, 1, inputs[1].shape[0]));
    rules.push_back(rule(1, 1, whole, SplitRule::partial, inputs[1].shape[1]));
  } else {
    rules.push_back(rule(1, 0, 0, 1, options_.groups));
  }
  return rules;
}

ContractPtr Conv2d::piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const {
  if (rule.outputs[0] == SplitRule::partial && rule.inputs.size() == 3 && piece.begin > 0) {
    return std::make_shared<Conv2d>(options_, false);
  }
  if (rule.inputs[0] == 1 && options_.groups > 1) {
    return std::make_shared<Conv2d>(with_groups(options_, piece.end - piece.begin), adds_bias_);
  }
  return self();
}

Cost Conv2d::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = operations(outputs[0].shape, inputs[1].shape);
  return cost;
}

LayoutRule Conv2d::layouts() const {
  return {1, 1, true};
}

std::string Conv2dInputGradient::attributes() const {
  return Conv2dContract::attributes() + fmt::format(" extents={}", extents_);
}

std::vector<TensorInfo> Conv2dInputGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  const Shape& output_gradient = inputs[0].shape;
  const Shape& weight = inputs[1].shape;
  check_floating(type(), inputs[0], "output gradient");
  check_rank_4(type(), inputs[0], "output gradient");
  check_rank_4(type(), inputs[1], "weight");
  check_same_dtype(type(), inputs[0], "output gradient", inputs[1], "weight");
  check_groups(type(), options_, weight[0]);
  check_elements(type(), weight[1], extents_);
  if (output_gradient[1] != weight[0]) {
    throw Error(type(),
                fmt::format("weight has {} output channels, the output's gradient has {}", weight[0],
                            output_gradient[1]),
                shapes_hint);
  }
  check_gradient_extents(type(), options_, extents_, {weight[2], weight[3]}, output_gradient);
  return {{{output_gradient[0], weight[1] * options_.groups, extents_[0], extents_[1]}, inputs[0].dtype}};
}

std::vector<Tensor> Conv2dInputGradient::gradient(const GradientContext& context) const {
  // Linear in both inputs: the transpose in the output's gradient is the convolution itself.
  Graph& graph = context.op().graph();
  const Tensor gradient = context.output_gradient(0);
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) {
    gradients[0] = graph.add(std::make_shared<Conv2d>(options_), {gradient, context.input(1)}).output();
  }
  if (context.needs(1)) {
    const Shape& weight = context.input(1).shape();
    const auto contract = std::make_shared<Conv2dWeightGradient>(
        options_, std::array<std::int64_t, 2>{weight[2], weight[3]}, false);
    gradients[1] = graph.add(contract, {gradient, context.input(0)}).output();
  }
  return gradients;
}

std::vector<SplitRule> Conv2dInputGradient::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  std::vector<SplitRule> rules{{{0, whole}, {0}, inputs[0].shape[0], false}};
  if (options_.groups == 1) {
    rules.push_back({{whole, 1}, {1}, inputs[1].shape[1], false});
    rules.push_back({{1, 0}, {SplitRule::partial}, inputs[1].shape[0], false});
  } else {
    rules.push_back({{1, 0}, {1}, options_.groups, false});
  }
  return rules;
}

ContractPtr Conv2dInputGradient::piece(const SplitRule& rule, const Piece& piece,
                                       std::span<const TensorInfo>) const {
  if (rule.inputs[0] == 1 && options_.groups > 1) {
    return std::make_shared<Conv2dInputGradient>(with_groups(options_, piece.end - piece.begin), extents_);
  }
  return self();
}

Cost Conv2dInputGradient::cost(std::span<const TensorInfo> inputs,
                               std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = operations(inputs[0].shape, inputs[1].shape);
  return cost;
}

LayoutRule Conv2dInputGradient::layouts() const {
  return {1, 1, true};
}

std::string Conv2dWeightGradient::attributes() const {
  return Conv2dContract::attributes() + fmt::format(" kernel={} has_bias={}", kernel_, has_bias_);
}

std::vector<TensorInfo> Conv2dWeightGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  const Shape& image = inputs[0].shape;
  const Shape& output_gradient = inputs[1].shape;
  check_floating(type(), inputs[0], "image");
  check_rank_4(type(), inputs[0], "image");
  check_rank_4(type(), inputs[1], "output gradient");
  check_same_dtype(type(), inputs[0], "image", inputs[1], "output gradient");
  check_groups(type(), options_, output_gradient[1]);
  check_elements(type(), image[1], {image[2], image[3]});
  if (image[1] % options_.groups != 0) {
    throw Error(type(),
                fmt::format("{} input channels do not divide into {} groups", image[1], options_.groups));
  }
  if (image[0] != output_gradient[0]) {
    throw Error(type(),
                fmt::format("there are {} images and gradients of {} outputs", image[0], output_gradient[0]));
  }
  check_gradient_extents(type(), options_, {image[2], image[3]}, kernel_, output_gradient);
  const Shape weight{output_gradient[1], image[1] / options_.groups, kernel_[0], kernel_[1]};
  std::vector<TensorInfo> outputs{{weight, inputs[0].dtype}};
  if (has_bias_) outputs.push_back({{output_gradient[1]}, inputs[0].dtype});
  return outputs;
}

std::vector<Tensor> Conv2dWeightGradient::gradient(const GradientContext& context) const {
  // Linear in both inputs; the gradients of its outputs take the places of weight and bias.
  Graph& graph = context.op().graph();
  const Tensor image = context.input(0);
  const Tensor output_gradient = context.input(1);
  const Tensor weight_gradient = context.output_gradient(0);
  const Tensor bias_gradient = has_bias_ ? context.output_gradient(1) : Tensor{};
  std::vector<Tensor> gradients(2);
  if (context.needs(0) && weight_gradient) {
    const auto contract = std::make_shared<Conv2dInputGradient>(
        options_, std::array<std::int64_t, 2>{image.shape()[2], image.shape()[3]});
    gradients[0] = graph.add(contract, {output_gradient, weight_gradient}).output();
  }
  if (context.needs(1)) {
    if (weight_gradient) {
      gradients[1] = conv2d(image, weight_gradient, bias_gradient, options_);
    } else if (bias_gradient) {
      gradients[1] = broadcast_to(reshape(bias_gradient, {1, -1, 1, 1}), output_gradient.shape());
    }
  }
  return gradients;
}

std::vector<SplitRule> Conv2dWeightGradient::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  const auto rule = [&](int image, int output_gradient, int weight, int bias, std::int64_t units) {
    std::vector<int> outputs{weight};
    if (has_bias_) outputs.push_back(bias);
    return SplitRule{{image, output_gradient}, outputs, units, false};
  };
  std::vector<SplitRule> rules{rule(0, 0, SplitRule::partial, SplitRule::partial, inputs[0].shape[0])};
  if (options_.groups == 1) {
    rules.push_back(rule(whole, 1, 0, 0, inputs[1].shape[1]));
    rules.push_back(rule(1, whole, 1, whole, inputs[0].shape[1]));
  } else {
    rules.push_back(rule(1, 1, 0, 0, options_.groups));
  }
  return rules;
}

ContractPtr Conv2dWeightGradient::piece(const SplitRule& rule, const Piece& piece,
                                        std::span<const TensorInfo>) const {
  if (rule.inputs[0] == 1 && options_.groups > 1) {
    return std::make_shared<Conv2dWeightGradient>(with_groups(options_, piece.end - piece.begin), kernel_,
                                                  has_bias_);
  }
  return self();
}

Cost Conv2dWeightGradient::cost(std::span<const TensorInfo> inputs,
                                std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = operations(inputs[1].shape, outputs[0].shape);
  return cost;
}

LayoutRule Conv2dWeightGradient::layouts() const {
  return {3, 0, true};
}

namespace {

struct ConvolutionSample {
  std::string name;
  Conv2dOptions options;
  Shape image;
  Shape weight;
  bool has_bias = true;
};

std::vector<ConvolutionSample> convolution_samples() {
  return {{"same_extents", {.padding = {1, 1, 1, 1}}, {2, 3, 5, 4}, {4, 3, 3, 3}},
          {"pointwise", {}, {2, 5, 3, 3}, {4, 5, 1, 1}, false},
          {"whole_vectors", {.stride = {2, 1}}, {1, 16, 3, 2}, {16, 16, 2, 1}},
          {"pointwise_stride_2", {.stride = {2, 2}}, {2, 4, 5, 4}, {3, 4, 1, 1}},
          {"stride_and_asymmetric_padding",
           {.stride = {2, 1}, .padding = {1, 0, 2, 1}},
           {2, 2, 6, 5},
           {3, 2, 3, 2}},
          {"stride_leaves_a_rest", {.stride = {3, 2}}, {1, 2, 7, 6}, {2, 2, 3, 3}},
          {"dilation", {.padding = {2, 1, 2, 1}, .dilation = {2, 3}}, {2, 2, 6, 7}, {3, 2, 3, 2}},
          {"groups", {.padding = {1, 1, 1, 1}, .groups = 2}, {2, 4, 4, 4}, {6, 2, 3, 3}},
          {"depthwise",
           {.stride = {2, 2}, .padding = {1, 1, 1, 1}, .groups = 3},
           {2, 3, 5, 5},
           {3, 1, 3, 3},
           false},
          {"single_sample", {.padding = {2, 2, 2, 2}}, {1, 1, 6, 6}, {2, 1, 5, 5}}};
}

std::vector<SampleInput> sample_inputs(std::initializer_list<Shape> shapes) {
  std::vector<SampleInput> inputs;
  for (const Shape& shape : shapes) inputs.push_back({{shape, DType::f32}});
  return inputs;
}

}  // namespace

void register_convolution(Registry& registry) {
  std::vector<Sample> forward;
  std::vector<Sample> input_gradient;
  std::vector<Sample> weight_gradient;
  for (const ConvolutionSample& sample : convolution_samples()) {
    const Conv2dOptions options = sample.options;
    const std::array<std::int64_t, 2> extents{sample.image[2], sample.image[3]};
    const std::array<std::int64_t, 2> kernel{sample.weight[2], sample.weight[3]};
    const bool has_bias = sample.has_bias;
    std::vector<SampleInput> inputs = sample_inputs({sample.image, sample.weight});
    const Shape output = Conv2d(options).infer(std::vector{inputs[0].info, inputs[1].info})[0].shape;
    if (has_bias) inputs.push_back({{{sample.weight[0]}, DType::f32}});
    forward.push_back(
        {sample.name, [options](DType) { return std::make_shared<Conv2d>(options); }, inputs, true, true});
    input_gradient.push_back(
        {sample.name,
         [options, extents](DType) { return std::make_shared<Conv2dInputGradient>(options, extents); },
         sample_inputs({output, sample.weight}), true, true});
    weight_gradient.push_back({sample.name,
                               [options, kernel, has_bias](DType) {
                                 return std::make_shared<Conv2dWeightGradient>(options, kernel, has_bias);
                               },
                               sample_inputs({sample.image, output}), true, true});
  }
  forward.push_back({"bias_left_out", [](DType) { return std::make_shared<Conv2d>(Conv2dOptions{}, false); },
                     sample_inputs({{1, 2, 4, 4}, {2, 2, 3, 3}, {2}}), true, true});
  forward.back().inputs[2].differentiable = false;
  registry.add("conv2d", std::move(forward));
  registry.add("conv2d_input_gradient", std::move(input_gradient));
  registry.add("conv2d_weight_gradient", std::move(weight_gradient));
}

}  // namespace purine::ops
