#include "purine/models/models.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/nearest.h"

namespace purine::models {
namespace {

template <Tensor (*function)(Tensor, std::int64_t, nn::Mode)>
Network plain(Tensor image, std::int64_t classes, nn::Mode mode) {
  return {function(image, classes, mode), {}};
}

template <Network (*function)(Tensor, std::int64_t, nn::Mode, GoogLeNetOptions), bool auxiliary_heads>
Network with_heads(Tensor image, std::int64_t classes, nn::Mode mode) {
  return function(image, classes, mode, {auxiliary_heads});
}

constexpr Model models[] = {
    {"alexnet", "AlexNet in one column, as torchvision has it", {3, 224, 224}, 1000, plain<alexnet>},
    {"alexnet_grouped",
     "AlexNet of 2012 with grouped convolutions and response normalisation",
     {3, 227, 227},
     1000,
     plain<alexnet_grouped>},
    {"googlenet",
     "GoogLeNet of 2014 with response normalisation",
     {3, 224, 224},
     1000,
     with_heads<googlenet, false>},
    {"googlenet_auxiliary",
     "GoogLeNet of 2014 with its two auxiliary heads",
     {3, 224, 224},
     1000,
     with_heads<googlenet, true>},
    {"googlenet_bn",
     "GoogLeNet with batch normalisation, as torchvision has it",
     {3, 224, 224},
     1000,
     with_heads<googlenet_bn, false>},
    {"googlenet_bn_auxiliary",
     "GoogLeNet with batch normalisation and auxiliary heads",
     {3, 224, 224},
     1000,
     with_heads<googlenet_bn, true>},
    {"lenet",
     "LeNet as Caffe has it",
     {1, 28, 28},
     10,
     [](Tensor image, std::int64_t classes, nn::Mode) {
       return Network{lenet(image, classes), {}};
     }},
    {"network_in_network", "Network in Network for CIFAR-10", {3, 32, 32}, 10, plain<network_in_network>},
    {"resnet18", "residual network with 18 layers", {3, 224, 224}, 1000, plain<resnet18>},
    {"resnet50", "residual network with 50 layers", {3, 224, 224}, 1000, plain<resnet50>},
    {"small_convnet", "small network that learns fast on a CPU", {1, 28, 28}, 10, plain<small_convnet>},
    {"vgg16", "VGG with 16 layers", {3, 224, 224}, 1000, plain<vgg16>},
};

}  // namespace

std::span<const Model> all_models() {
  return models;
}

const Model& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const Model& model : models) {
    if (model.name == name) return model;
    names.emplace_back(model.name);
  }
  const std::string meant = nearest(name, names);
  throw Error("models", fmt::format("there is no model '{}'", name),
              meant.empty() ? fmt::format("models are {}", fmt::join(names, ", "))
                            : fmt::format("did you mean '{}'?", meant));
}

Network build(std::string_view name, Tensor image, std::int64_t classes, nn::Mode mode) {
  return find_model(name).build(image, classes, mode);
}

}  // namespace purine::models
