// Network in Network for small images.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"
#include "purine/nn/mode.h"

namespace purine::models {

/// Lin, Chen, Yan, "Network in network", 2013, as its authors published it for CIFAR-10: three convolutions,
/// each followed by two of 1 x 1, and global averages in place of fully connected layers; 966,986 parameters
/// for 10 classes. `image` is [N, 3, H, W], made for 32 x 32. Returns logits [N, classes].
Tensor network_in_network(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

}  // namespace purine::models
