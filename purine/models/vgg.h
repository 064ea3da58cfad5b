// VGG with 16 layers.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"
#include "purine/nn/mode.h"

namespace purine::models {

/// Configuration D of Simonyan, Zisserman, "Very deep convolutional networks for large-scale image
/// recognition", 2014: 138,357,544 parameters for 3 x 224 x 224 images and 1000 classes. `image` is [N, C, H,
/// W] with H and W at least 32. Returns logits [N, classes].
Tensor vgg16(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

}  // namespace purine::models
