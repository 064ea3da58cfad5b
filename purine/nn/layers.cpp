#include "purine/nn/layers.h"

#include <string>

#include "purine/core/error.h"
#include "purine/ops/bias.h"
#include "purine/ops/dropout.h"
#include "purine/ops/matmul.h"
#include "purine/ops/moving_average.h"
#include "purine/ops/unbiased_variance.h"

namespace purine::nn {
namespace {

constexpr VariableOptions learnt_without_decay = {.trainable = true, .decays = false};
constexpr VariableOptions not_learnt = {.trainable = false, .decays = false};

Variable make_variable(Graph& graph, std::string_view name, const TensorInfo& info,
                       const Initializer& initializer, VariableOptions options = {}) {
  return graph.variable(name, info, initializer(info), options);
}

std::string path_of(Tensor x, std::string_view name) {
  const std::string scope = x.graph().current_scope();
  return scope.empty() ? std::string(name) : scope + "/" + std::string(name);
}

/// The extent that says how many values a layer's variables have; layer and name are for the error.
std::int64_t extent_of(Tensor x, int axis, int least_rank, std::string_view layer, std::string_view name) {
  const int rank = x.shape().rank();
  const int counted = axis < 0 ? axis + rank : axis;
  if (rank < least_rank || counted < 0 || counted >= rank) {
    throw Error(layer,
                "x is " + x.info().text() + ", it needs at least " + std::to_string(least_rank) +
                    " dimensions and a dimension " + std::to_string(axis),
                layer == "linear" ? "make it a matrix of samples first: ops::flatten(x)" : "")
        .at(path_of(x, name));
  }
  return x.shape()[counted];
}

}  // namespace

Tensor conv2d(Tensor x, std::int64_t out_channels, Extent2d kernel, const Conv2dOptions& options,
              std::string_view name) {
  const std::int64_t channels = extent_of(x, 1, 4, "conv2d", name);
  if (options.groups < 1 || channels % options.groups != 0 || out_channels % options.groups != 0) {
    throw Error("conv2d", std::to_string(channels) + " channels to " + std::to_string(out_channels) +
                              " don't divide into " + std::to_string(options.groups) + " groups")
        .at(path_of(x, name));
  }
  Graph& graph = x.graph();
  auto scope = graph.scope(name);
  const Shape shape{out_channels, channels / options.groups, kernel.height, kernel.width};
  const Tensor weight = make_variable(graph, "weight", {shape, x.dtype()}, options.weight);
  Tensor bias;
  if (options.has_bias) {
    bias = make_variable(graph, "bias", {{out_channels}, x.dtype()}, options.bias, learnt_without_decay);
  }
  ops::Conv2dOptions convolution;
  convolution.stride = {options.stride.height, options.stride.width};
  convolution.padding = {options.padding.top, options.padding.left, options.padding.bottom,
                         options.padding.right};
  convolution.dilation = {options.dilation.height, options.dilation.width};
  convolution.groups = options.groups;
  return ops::conv2d(x, weight, bias, convolution);
}

Tensor linear(Tensor x, std::int64_t out_features, const LinearOptions& options, std::string_view name) {
  const std::int64_t in_features = extent_of(x, -1, 2, "linear", name);
  Graph& graph = x.graph();
  auto scope = graph.scope(name);
  const Tensor weight =
      make_variable(graph, "weight", {{out_features, in_features}, x.dtype()}, options.weight);
  Tensor bias;
  if (options.has_bias) {
    bias = make_variable(graph, "bias", {{out_features}, x.dtype()}, options.bias, learnt_without_decay);
  }
  return ops::linear(x, weight, bias);
}

Tensor bias(Tensor x, const BiasOptions& options, std::string_view name) {
  const std::int64_t channels = extent_of(x, options.axis, 1, "bias", name);
  Graph& graph = x.graph();
  auto scope = graph.scope(name);
  const Tensor values =
      make_variable(graph, "bias", {{channels}, x.dtype()}, options.bias, learnt_without_decay);
  return ops::bias(x, values, options.axis, "add");
}

Tensor batch_normalization(Tensor x, Mode mode, const BatchNormalizationOptions& options,
                           std::string_view name) {
  const TensorInfo info{{extent_of(x, 1, 2, "batch_normalization", name)}, x.dtype()};
  Graph& graph = x.graph();
  auto scope = graph.scope(name);
  const Tensor scale = make_variable(graph, "scale", info, options.scale, learnt_without_decay);
  const Tensor shift = make_variable(graph, "shift", info, options.shift, learnt_without_decay);
  const Variable mean = make_variable(graph, "running_mean", info, constant(0), not_learnt);
  const Variable variance = make_variable(graph, "running_variance", info, constant(1), not_learnt);
  if (mode == Mode::inference) {
    return ops::batch_normalization_inference(x, scale, shift, mean, variance, {options.epsilon});
  }
  const ops::BatchNormalizationResult batch =
      ops::batch_normalization_training(x, scale, shift, {options.epsilon});
  graph.set_next(mean, ops::moving_average(mean, batch.mean, options.momentum, 1, "next_mean"));
  const Tensor unbiased = ops::unbiased_variance(batch.variance, x);
  graph.set_next(variance, ops::moving_average(variance, unbiased, options.momentum, 1, "next_variance"));
  return batch.y;
}

Tensor dropout(Tensor x, double probability, Mode mode, std::string_view name) {
  return mode == Mode::training ? ops::dropout(x, probability, name) : x;
}

}  // namespace purine::nn
