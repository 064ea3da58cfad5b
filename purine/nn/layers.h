// Layers: functions on tensors that also make the variables they need, in a scope of the layer's name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "purine/graph/graph.h"
#include "purine/nn/initializer.h"
#include "purine/nn/mode.h"
#include "purine/ops/batch_normalization.h"
#include "purine/ops/convolution.h"

namespace purine::nn {

/// Height and width; one number is both.
struct Extent2d {
  Extent2d(std::int64_t both) : height(both), width(both) {}  // NOLINT: `.stride = 2` reads well
  Extent2d(std::int64_t height_, std::int64_t width_) : height(height_), width(width_) {}

  std::int64_t height;
  std::int64_t width;
};

/// Zeros around an image; one number is all four sides, two are top and bottom, left and right.
struct Padding2d {
  Padding2d(std::int64_t all) : Padding2d(all, all) {}  // NOLINT: `.padding = 1` reads well
  Padding2d(std::int64_t vertical, std::int64_t horizontal)
      : Padding2d(vertical, horizontal, vertical, horizontal) {}
  Padding2d(std::int64_t top_, std::int64_t left_, std::int64_t bottom_, std::int64_t right_)
      : top(top_), left(left_), bottom(bottom_), right(right_) {}

  std::int64_t top;
  std::int64_t left;
  std::int64_t bottom;
  std::int64_t right;
};

struct Conv2dOptions {
  Extent2d stride = 1;
  Padding2d padding = 0;
  Extent2d dilation = 1;
  std::int64_t groups = 1;
  bool has_bias = true;
  /// Of [out_channels, channels / groups, kernel height, kernel width]; the default is PyTorch's, uniform in
  /// ±1 / sqrt(fan in).
  Initializer weight = kaiming_uniform(Fan::in, 2.23606797749979);
  Initializer bias = constant(0);
};

/// Convolution of images `x` [N, C, H, W] with `weight` and, unless told otherwise, `bias`, which decay and
/// do not decay. The result is [N, out_channels, OH, OW]; see ops::conv2d. Throws Error where shapes do not
/// fit.
Tensor conv2d(Tensor x, std::int64_t out_channels, Extent2d kernel, const Conv2dOptions& options = {},
              std::string_view name = "conv2d");

struct LinearOptions {
  bool has_bias = true;
  /// Of [out_features, in_features]; the default is PyTorch's, uniform in ±1 / sqrt(in_features).
  Initializer weight = kaiming_uniform(Fan::in, 2.23606797749979);
  Initializer bias = constant(0);
};

/// The fully connected layer on the last dimension of `x` […, in_features], of rank 2 or more: the result is
/// […, out_features]; see ops::linear. An image is flattened first: `nn::linear(ops::flatten(x), 10)`.
Tensor linear(Tensor x, std::int64_t out_features, const LinearOptions& options = {},
              std::string_view name = "linear");

struct BiasOptions {
  int axis = 1;  ///< the dimension whose elements have a bias each; negative: counted from the last
  Initializer bias = constant(0);
};

/// Adds a learnt `bias` of one value for each channel.
Tensor bias(Tensor x, const BiasOptions& options = {}, std::string_view name = "bias");

struct BatchNormalizationOptions {
  double epsilon = 1e-5;  ///< added to the variance
  double momentum = 0.1;  ///< weight of a batch's statistics in the running ones
  Initializer scale = constant(1);
  Initializer shift = constant(0);
};

/// Batch normalisation of `x` [N, C, …] with learnt `scale` and `shift`, which do not decay. In training the
/// batch's own statistics normalise, and `running_mean` and `running_variance` (unbiased, as PyTorch's)
/// follow them; in inference the running ones do.
Tensor batch_normalization(Tensor x, Mode mode, const BatchNormalizationOptions& options = {},
                           std::string_view name = "batch_normalization");

/// Dropout in training; `x` itself in inference.
Tensor dropout(Tensor x, double probability, Mode mode, std::string_view name = "dropout");

}  // namespace purine::nn
