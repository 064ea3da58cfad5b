// LeNet as Caffe has it.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"

namespace purine::models {

/// The digit recogniser of LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document
/// recognition", 1998, with the sizes and rectifier of Caffe's example: 431,080 parameters for 28 x 28 grey
/// images and 10 classes. `image` is [N, C, H, W] with H and W at least 16. Returns logits [N, classes].
Tensor lenet(Tensor image, std::int64_t classes);

}  // namespace purine::models
