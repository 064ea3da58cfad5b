// AlexNet in two forms.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"
#include "purine/nn/mode.h"

namespace purine::models {

/// The one-column network of Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
/// 2014, as torchvision has it: 61,100,840 parameters for 3 x 224 x 224 images and 1000 classes. `image` is
/// [N, C, H, W] with H and W at least 63. Returns logits [N, classes].
Tensor alexnet(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

/// The network of Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
/// networks", 2012, with grouped convolutions and local response normalisation: 60,965,224 parameters for 3 x
/// 227 x 227 images and 1000 classes. `image` is [N, C, H, W] with H and W at least 67. Returns logits [N,
/// classes].
Tensor alexnet_grouped(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

}  // namespace purine::models
