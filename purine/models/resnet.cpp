#include "purine/models/resnet.h"

#include <array>
#include <string>

#include "purine/nn/layers.h"
#include "purine/ops/binary.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {
namespace {

struct Architecture {
  std::string_view name;
  std::array<int, 4> blocks;  // in each stage
  bool bottleneck;            // 1 x 1, 3 x 3, 1 x 1 with four times the channels, else 3 x 3 twice
};

class ResNetBuilder {
 public:
  ResNetBuilder(const Architecture& architecture, nn::Mode mode) : architecture_(architecture), mode_(mode) {}

  Tensor build(Tensor image, std::int64_t classes) const {
    auto scope = image.graph().scope(architecture_.name);
    Tensor x = ops::relu(convolution(image, 64, 7, 2, "1"));
    x = ops::max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}});
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 0; i < architecture_.blocks[static_cast<std::size_t>(stage)]; ++i) {
        const std::string name = "stage" + std::to_string(stage + 1) + "/block" + std::to_string(i + 1);
        x = block(x, std::int64_t{64} << stage, stage > 0 && i == 0 ? 2 : 1, name);
      }
    }
    return nn::linear(ops::flatten(ops::global_average_pool2d(x)), classes, {}, "fc");
  }

 private:
  /// A convolution without bias, and its normalisation: `conv<number>` and `norm<number>`.
  Tensor convolution(Tensor x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                     const std::string& number) const {
    x = nn::conv2d(x, channels, kernel,
                   {.stride = stride,
                    .padding = kernel / 2,
                    .has_bias = false,
                    .weight = nn::kaiming_normal(nn::Fan::out)},
                   "conv" + number);
    return nn::batch_normalization(x, mode_, {}, "norm" + number);
  }

  Tensor block(Tensor x, std::int64_t channels, std::int64_t stride, std::string_view name) const {
    auto scope = x.graph().scope(name);
    const std::int64_t out_channels = architecture_.bottleneck ? 4 * channels : channels;
    Tensor y;
    if (architecture_.bottleneck) {
      y = ops::relu(convolution(x, channels, 1, 1, "1"));
      y = ops::relu(convolution(y, channels, 3, stride, "2"));
      y = convolution(y, out_channels, 1, 1, "3");
    } else {
      y = ops::relu(convolution(x, channels, 3, stride, "1"));
      y = convolution(y, out_channels, 3, 1, "2");
    }
    Tensor shortcut = x;
    if (stride != 1 || x.shape()[1] != out_channels) {
      shortcut = convolution(x, out_channels, 1, stride, "_shortcut");
    }
    return ops::relu(ops::add(y, shortcut));
  }

  Architecture architecture_;
  nn::Mode mode_;
};

}  // namespace

Tensor resnet18(Tensor image, std::int64_t classes, nn::Mode mode) {
  return ResNetBuilder({"resnet18", {2, 2, 2, 2}, false}, mode).build(image, classes);
}

Tensor resnet50(Tensor image, std::int64_t classes, nn::Mode mode) {
  return ResNetBuilder({"resnet50", {3, 4, 6, 3}, true}, mode).build(image, classes);
}

}  // namespace purine::models
