#include "purine/models/network_in_network.h"

#include <array>
#include <string>

#include "purine/nn/layers.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {
namespace {

/// A convolution and the two of 1 x 1 that follow it, a small network at every place.
Tensor block(Tensor x, std::array<std::int64_t, 3> channels, std::int64_t kernel, std::string_view name) {
  auto scope = x.graph().scope(name);
  const nn::Initializer weight = nn::normal(0, 0.05);
  x = nn::conv2d(x, channels[0], kernel, {.padding = kernel / 2, .weight = weight}, "conv");
  x = nn::conv2d(ops::relu(x), channels[1], 1, {.weight = weight}, "inner1");
  x = nn::conv2d(ops::relu(x), channels[2], 1, {.weight = weight}, "inner2");
  return ops::relu(x);
}

}  // namespace

Tensor network_in_network(Tensor image, std::int64_t classes, nn::Mode mode) {
  auto scope = image.graph().scope("network_in_network");
  const ops::Pool2dOptions pool = {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true};
  Tensor x = block(image, {192, 160, 96}, 5, "block1");
  x = nn::dropout(ops::max_pool2d(x, pool, "pool1"), 0.5, mode, "dropout1");
  x = block(x, {192, 192, 192}, 5, "block2");
  x = nn::dropout(ops::average_pool2d(x, pool, "pool2"), 0.5, mode, "dropout2");
  x = block(x, {192, 192, classes}, 3, "block3");
  return ops::flatten(ops::global_average_pool2d(x, "pool3"));
}

}  // namespace purine::models
