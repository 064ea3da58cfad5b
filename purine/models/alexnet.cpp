#include "purine/models/alexnet.h"

#include "purine/nn/layers.h"
#include "purine/ops/local_response_normalization.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {
namespace {

constexpr ops::Pool2dOptions pool = {.kernel = {3, 3}, .stride = {2, 2}};

Tensor convolution(Tensor x, std::int64_t channels, std::int64_t kernel, const nn::Conv2dOptions& options,
                   std::string_view name) {
  return ops::relu(nn::conv2d(x, channels, kernel, options, name));
}

/// The paper's neighbourhood: k = 2, and alpha = 1e-4 for the sum of 5, where ours is for the mean.
Tensor normalize(Tensor x, std::string_view name) {
  return ops::local_response_normalization(x, {.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2}, name);
}

}  // namespace

Tensor alexnet(Tensor image, std::int64_t classes, nn::Mode mode) {
  auto scope = image.graph().scope("alexnet");
  Tensor x = convolution(image, 64, 11, {.stride = 4, .padding = 2}, "conv1");
  x = ops::max_pool2d(x, pool, "pool1");
  x = convolution(x, 192, 5, {.padding = 2}, "conv2");
  x = ops::max_pool2d(x, pool, "pool2");
  x = convolution(x, 384, 3, {.padding = 1}, "conv3");
  x = convolution(x, 256, 3, {.padding = 1}, "conv4");
  x = convolution(x, 256, 3, {.padding = 1}, "conv5");
  x = ops::flatten(ops::max_pool2d(x, pool, "pool5"));
  x = ops::relu(nn::linear(nn::dropout(x, 0.5, mode, "dropout6"), 4096, {}, "fc6"));
  x = ops::relu(nn::linear(nn::dropout(x, 0.5, mode, "dropout7"), 4096, {}, "fc7"));
  return nn::linear(x, classes, {}, "fc8");
}

Tensor alexnet_grouped(Tensor image, std::int64_t classes, nn::Mode mode) {
  auto scope = image.graph().scope("alexnet_grouped");
  // Section 5 of the paper: deviation 0.01, and biases of 1 where that gives rectifiers positive inputs
  // early.
  const nn::Initializer weight = nn::normal(0, 0.01);
  const nn::Initializer one = nn::constant(1);
  Tensor x = convolution(image, 96, 11, {.stride = 4, .weight = weight}, "conv1");
  x = ops::max_pool2d(normalize(x, "normalization1"), pool, "pool1");
  x = convolution(x, 256, 5, {.padding = 2, .groups = 2, .weight = weight, .bias = one}, "conv2");
  x = ops::max_pool2d(normalize(x, "normalization2"), pool, "pool2");
  x = convolution(x, 384, 3, {.padding = 1, .weight = weight}, "conv3");
  x = convolution(x, 384, 3, {.padding = 1, .groups = 2, .weight = weight, .bias = one}, "conv4");
  x = convolution(x, 256, 3, {.padding = 1, .groups = 2, .weight = weight, .bias = one}, "conv5");
  x = ops::flatten(ops::max_pool2d(x, pool, "pool5"));
  x = ops::relu(nn::linear(x, 4096, {.weight = weight, .bias = one}, "fc6"));
  x = nn::dropout(x, 0.5, mode, "dropout6");
  x = ops::relu(nn::linear(x, 4096, {.weight = weight, .bias = one}, "fc7"));
  x = nn::dropout(x, 0.5, mode, "dropout7");
  return nn::linear(x, classes, {.weight = weight}, "fc8");
}

}  // namespace purine::models
