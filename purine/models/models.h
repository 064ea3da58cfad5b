// All models, by function and by name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "purine/models/alexnet.h"
#include "purine/models/googlenet.h"
#include "purine/models/lenet.h"
#include "purine/models/network.h"
#include "purine/models/network_in_network.h"
#include "purine/models/resnet.h"
#include "purine/models/small_convnet.h"
#include "purine/models/vgg.h"

namespace purine::models {

/// A model by name, with what it was published for.
struct Model {
  std::string_view name;
  std::string_view summary;           ///< one line
  std::array<std::int64_t, 3> image;  ///< channels, height, width
  std::int64_t classes;
  Network (*build)(Tensor image, std::int64_t classes, nn::Mode mode);
};

/// Every model, by name.
std::span<const Model> all_models();
/// The model of a name; if there is none, throws Error with the name that was probably meant, else all of
/// them.
const Model& find_model(std::string_view name);
/// Builds a model on `image` [N, C, H, W] in the current scope.
Network build(std::string_view name, Tensor image, std::int64_t classes, nn::Mode mode = nn::Mode::training);

}  // namespace purine::models
