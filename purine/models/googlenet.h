// GoogLeNet in two forms.
#pragma once

#include <cstdint>

#include "purine/graph/graph.h"
#include "purine/models/network.h"
#include "purine/nn/mode.h"

namespace purine::models {

struct GoogLeNetOptions {
  /// Two classifiers on the way, whose losses count 0.3 each in training. Their variables exist in inference
  /// too, but nobody needs their results.
  bool auxiliary_heads = false;
};

/// Szegedy et al., "Going deeper with convolutions", 2014, with local response normalisation and the initial
/// values of Caffe's bvlc_googlenet: 6,998,552 parameters for 1000 classes, 13,378,280 with auxiliary heads.
/// `image` is [N, 3, H, W], made for 224 x 224.
Network googlenet(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training,
                  GoogLeNetOptions options = {});

/// The form with batch normalisation in every convolution, as torchvision has it (its 5 x 5 convolutions are
/// 3 x 3): 6,624,904 parameters for 1000 classes, 13,004,888 with auxiliary heads, running statistics not
/// counted. The auxiliary heads take the paper's average of 5 x 5 windows with stride 3.
Network googlenet_bn(Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training,
                     GoogLeNetOptions options = {});

}  // namespace purine::models
