#include "purine/parallel/pipeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/binary.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "tests/parallel/compare.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::error_text;
using test::expect_same;

Mesh stages(int count) {
  std::vector<Location> locations;
  for (int i = 0; i < count; ++i) locations.push_back({0, DeviceKind::emu, i});
  return Mesh(locations, "stage");
}

/// Convolutions, a connection around a layer, dropout and fully connected layers.
struct Net {
  Graph graph;
  Tensor loss;

  explicit Net(std::int64_t samples, DType dtype = DType::f64, double clip_norm = 0) {
    Tensor x = graph.input("image", {{samples, 2, 10, 10}, dtype});
    const Tensor label = graph.input("label", {{samples}, DType::i64});
    x = ops::relu(nn::conv2d(x, 4, 3, {.padding = 1}, "conv1"));
    x = ops::relu(ops::add(x, nn::conv2d(x, 4, 3, {.padding = 1}, "conv2")));
    x = ops::relu(ops::max_pool2d(x, {}, "pool"));
    x = ops::relu(nn::linear(ops::flatten(x), 9, {}, "fc1"));
    x = nn::dropout(x, 0.25, nn::Mode::training);
    x = nn::linear(x, 7, {}, "fc2");
    loss = ops::softmax_cross_entropy(x, label, "loss");
    graph.watch(ops::accuracy(x, label));
    optim::momentum(loss,
                    {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = clip_norm});
  }
};

TEST(PipelineTest, EqualsOneLocation) {
  for (const int count : {1, 2, 3, 4}) {
    for (const int micro_batches : {1, 3, 4}) {
      for (const std::int64_t samples : {10, 3, 1}) {
        SCOPED_TRACE(std::to_string(samples) + " samples in " + std::to_string(micro_batches) +
                     " micro-batches through " + std::to_string(count) + " stages");
        Net net(samples);
        Partitioned parts = pipeline(net.graph, stages(count), {.micro_batches = micro_batches});
        expect_same(net.graph, parts, 2, 1e-12, 7);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace purine::parallel
