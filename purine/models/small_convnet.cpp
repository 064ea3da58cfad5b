#include "purine/models/small_convnet.h"

#include "purine/nn/layers.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {
namespace {

Tensor block(Tensor x, std::int64_t channels, nn::Mode mode, std::string_view name) {
  auto scope = x.graph().scope(name);
  x = nn::conv2d(x, channels, 3, {.padding = 1, .has_bias = false, .weight = nn::kaiming_normal()}, "conv");
  return ops::relu(nn::batch_normalization(x, mode, {}, "norm"));
}

}  // namespace

Tensor small_convnet(Tensor image, std::int64_t classes, nn::Mode mode) {
  auto scope = image.graph().scope("small_convnet");
  Tensor x = ops::max_pool2d(block(image, 16, mode, "block1"));
  x = ops::max_pool2d(block(x, 32, mode, "block2"));
  x = block(x, 64, mode, "block3");
  x = nn::linear(ops::flatten(x), 128, {.weight = nn::kaiming_normal()}, "fc1");
  return nn::linear(nn::dropout(ops::relu(x), 0.25, mode), classes, {}, "fc2");
}

}  // namespace purine::models
