// Residual networks.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"
#include "purine/nn/mode.h"

namespace purine::models {

/// He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015, with 18 layers: 11,689,512
/// parameters for 1000 classes, running statistics not counted. `image` is [N, 3, H, W], made for 224 x 224
/// and good from 32 x 32 on. Returns logits [N, classes].
Tensor resnet18(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

/// The same with 50 layers in blocks with bottlenecks, which take their stride in the 3 x 3 convolution as
/// torchvision's do: 25,557,032 parameters.
Tensor resnet50(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

}  // namespace purine::models
