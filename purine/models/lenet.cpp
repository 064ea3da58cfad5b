#include "purine/models/lenet.h"

#include "purine/nn/layers.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {

Tensor lenet(Tensor image, std::int64_t classes) {
  auto scope = image.graph().scope("lenet");
  // Variance 1 / fan in, which Caffe calls xavier.
  const nn::Conv2dOptions convolution = {.weight = nn::scaled_uniform()};
  const nn::LinearOptions dense = {.weight = nn::scaled_uniform()};
  Tensor x = nn::conv2d(image, 20, 5, convolution, "conv1");
  x = ops::max_pool2d(x, {}, "pool1");
  x = nn::conv2d(x, 50, 5, convolution, "conv2");
  x = ops::max_pool2d(x, {}, "pool2");
  x = nn::linear(ops::flatten(x), 500, dense, "fc1");
  return nn::linear(ops::relu(x), classes, dense, "fc2");
}

}  // namespace purine::models
