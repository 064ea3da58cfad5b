#include "purine/models/vgg.h"

#include <string>

#include "purine/nn/layers.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {

Tensor vgg16(Tensor image, std::int64_t classes, nn::Mode mode) {
  struct Stage {
    std::int64_t channels;
    int convolutions;
  };
  constexpr Stage stages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  auto scope = image.graph().scope("vgg16");
  Tensor x = image;
  for (int stage = 0; stage < 5; ++stage) {
    const std::string number = std::to_string(stage + 1);
    for (int i = 0; i < stages[stage].convolutions; ++i) {
      x = nn::conv2d(x, stages[stage].channels, 3, {.padding = 1, .weight = nn::kaiming_normal(nn::Fan::out)},
                     "conv" + number + "_" + std::to_string(i + 1));
      x = ops::relu(x);
    }
    x = ops::max_pool2d(x, {}, "pool" + number);
  }
  x = ops::flatten(x);
  const nn::LinearOptions dense = {.weight = nn::normal(0, 0.01)};
  x = nn::dropout(ops::relu(nn::linear(x, 4096, dense, "fc6")), 0.5, mode, "dropout6");
  x = nn::dropout(ops::relu(nn::linear(x, 4096, dense, "fc7")), 0.5, mode, "dropout7");
  return nn::linear(x, classes, dense, "fc8");
}

}  // namespace purine::models
