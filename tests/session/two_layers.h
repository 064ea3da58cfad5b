// A small network with momentum for tests of variables, and what it is fed.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"

namespace purine::test {

/// Two fully connected layers with momentum, whose inputs are fed.
struct TwoLayers {
  Graph graph;
  Tensor image;
  Tensor label;

  TwoLayers() {
    image = graph.input("image", {{6, 5}, DType::f32});
    label = graph.input("label", {{6}, DType::i32});
    const Tensor hidden = nn::linear(image, 7, {}, "fc1");
    optim::momentum(ops::softmax_cross_entropy(nn::linear(hidden, 3, {}, "fc2"), label, "loss"));
  }
};

inline void feed(Session& session, Tensor image, Tensor label) {
  session.feed(image, [](std::int64_t iteration, std::span<std::byte> bytes) {
    std::vector<float> values(30);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(iteration)) % 11) / 5 - 1;
    }
    std::memcpy(bytes.data(), values.data(), bytes.size());
  });
  session.feed(label, [](std::int64_t, std::span<std::byte> bytes) {
    const std::vector<std::int32_t> values = {0, 1, 2, 0, 1, 2};
    std::memcpy(bytes.data(), values.data(), bytes.size());
  });
}

}  // namespace purine::test
