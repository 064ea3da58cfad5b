#include "purine/models/googlenet.h"

#include <string>

#include "purine/nn/layers.h"
#include "purine/ops/concat.h"
#include "purine/ops/local_response_normalization.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"

namespace purine::models {
namespace {

/// Output channels of the branches of an inception module.
struct Inception {
  std::string_view name;
  std::int64_t direct;      // 1 x 1
  std::int64_t reduce3;     // 1 x 1 before the 3 x 3
  std::int64_t conv3;       // 3 x 3
  std::int64_t reduce5;     // 1 x 1 before the 5 x 5
  std::int64_t conv5;       // 5 x 5
  std::int64_t projection;  // 1 x 1 after pooling
};

constexpr Inception stage3[] = {{"inception_3a", 64, 96, 128, 16, 32, 32},
                                {"inception_3b", 128, 128, 192, 32, 96, 64}};
constexpr Inception stage4[] = {{"inception_4a", 192, 96, 208, 16, 48, 64},
                                {"inception_4b", 160, 112, 224, 24, 64, 64},
                                {"inception_4c", 128, 128, 256, 24, 64, 64},
                                {"inception_4d", 112, 144, 288, 32, 64, 64},
                                {"inception_4e", 256, 160, 320, 32, 128, 128}};
constexpr Inception stage5[] = {{"inception_5a", 256, 160, 320, 32, 128, 128},
                                {"inception_5b", 384, 192, 384, 48, 128, 128}};

/// The skeleton that both forms share; `normalized` says which it is.
class GoogLeNetBuilder {
 public:
  GoogLeNetBuilder(bool normalized, std::int64_t classes, nn::Mode mode, GoogLeNetOptions options)
      : normalized_(normalized), classes_(classes), mode_(mode), options_(options) {}

  Network build(Tensor image) const {
    auto scope = image.graph().scope(normalized_ ? "googlenet_bn" : "googlenet");
    Network network;
    Tensor x = unit(image, 64, 7, "conv1", 2);
    x = respond(ops::max_pool2d(x, pool(3), "pool1"), "normalization1");
    x = unit(x, 64, 1, "reduce2");
    x = respond(unit(x, 192, 3, "conv2"), "normalization2");
    x = ops::max_pool2d(x, pool(3), "pool2");
    for (const Inception& module : stage3) x = inception(x, module);
    x = ops::max_pool2d(x, pool(3), "pool3");
    for (const Inception& module : stage4) {
      x = inception(x, module);
      if (module.name == "inception_4a") add_head(network, x, "auxiliary1");
      if (module.name == "inception_4d") add_head(network, x, "auxiliary2");
    }
    x = ops::max_pool2d(x, pool(normalized_ ? 2 : 3), "pool4");
    for (const Inception& module : stage5) x = inception(x, module);
    x = ops::flatten(ops::global_average_pool2d(x, "pool5"));
    x = nn::dropout(x, normalized_ ? 0.2 : 0.4, mode_);
    network.logits = dense(x, classes_, 0, "fc");
    return network;
  }

 private:
  static ops::Pool2dOptions pool(std::int64_t kernel) {
    return {.kernel = {kernel, kernel}, .stride = {2, 2}, .ceil_mode = true};
  }

  /// A convolution that keeps the image's size, or divides it by the stride, and its rectifier.
  Tensor unit(Tensor x, std::int64_t channels, std::int64_t kernel, std::string_view name,
              std::int64_t stride = 1) const {
    nn::Conv2dOptions options = {.stride = stride, .padding = kernel / 2};
    if (!normalized_) {
      options.weight = nn::scaled_uniform();  // variance 1 / fan in, which Caffe calls xavier
      options.bias = nn::constant(0.2);
      return ops::relu(nn::conv2d(x, channels, kernel, options, name));
    }
    options.has_bias = false;
    options.weight = nn::normal(0, 0.01);
    x = nn::conv2d(x, channels, kernel, options, name);
    return ops::relu(
        nn::batch_normalization(x, mode_, {.epsilon = 1e-3}, std::string(name) + "/normalization"));
  }

  Tensor dense(Tensor x, std::int64_t features, double bias, std::string_view name) const {
    if (normalized_) return nn::linear(x, features, {.weight = nn::normal(0, 0.01)}, name);
    return nn::linear(x, features, {.weight = nn::scaled_uniform(), .bias = nn::constant(bias)}, name);
  }

  Tensor respond(Tensor x, std::string_view name) const {
    if (normalized_) return x;
    return ops::local_response_normalization(x, {.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1}, name);
  }

  Tensor inception(Tensor x, const Inception& module) const {
    auto scope = x.graph().scope(module.name);
    const Tensor direct = unit(x, module.direct, 1, "conv_1x1");
    const Tensor middle = unit(unit(x, module.reduce3, 1, "reduce_3x3"), module.conv3, 3, "conv_3x3");
    const Tensor large =
        unit(unit(x, module.reduce5, 1, "reduce_5x5"), module.conv5, normalized_ ? 3 : 5, "conv_5x5");
    const Tensor pooled = ops::max_pool2d(
        x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}, .ceil_mode = true}, "pool");
    return ops::concat({direct, middle, large, unit(pooled, module.projection, 1, "projection")}, 1);
  }

  void add_head(Network& network, Tensor x, std::string_view name) const {
    if (!options_.auxiliary_heads) return;
    auto scope = x.graph().scope(name);
    x = ops::average_pool2d(x, {.kernel = {5, 5}, .stride = {3, 3}}, "pool");
    x = ops::flatten(unit(x, 128, 1, "conv"));
    x = ops::relu(dense(x, 1024, 0.2, "fc1"));
    const Tensor logits = dense(nn::dropout(x, 0.7, mode_), classes_, 0, "fc2");
    if (mode_ == nn::Mode::training) network.auxiliary.push_back({logits, 0.3});
  }

  bool normalized_;
  std::int64_t classes_;
  nn::Mode mode_;
  GoogLeNetOptions options_;
};

}  // namespace

Network googlenet(Tensor image, std::int64_t classes, nn::Mode mode, GoogLeNetOptions options) {
  return GoogLeNetBuilder(false, classes, mode, options).build(image);
}

Network googlenet_bn(Tensor image, std::int64_t classes, nn::Mode mode, GoogLeNetOptions options) {
  return GoogLeNetBuilder(true, classes, mode, options).build(image);
}

}  // namespace purine::models
