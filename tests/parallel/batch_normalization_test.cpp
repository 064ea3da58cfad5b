#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "tests/parallel/compare.h"
#include "tests/parallel/devices.h"

namespace purine::parallel {
namespace {

using test::Array;
using test::assemble;
using test::devices;
using test::Evaluator;

struct NormalizedNetwork {
  Graph graph;
  Tensor loss;

  explicit NormalizedNetwork(std::int64_t samples) {
    Tensor x = graph.input("image", {{samples, 2, 5, 5}, DType::f64});
    const Tensor label = graph.input("label", {{samples}, DType::i64});
    x = nn::conv2d(x, 4, 3, {.has_bias = false}, "conv");
    x = ops::relu(nn::batch_normalization(x, nn::Mode::training, {}, "normalization"));
    loss = ops::softmax_cross_entropy(nn::linear(ops::flatten(x), 3, {}, "fc"), label, "loss");
    optim::momentum(loss, {.learning_rate = 0.1});
  }
};

TEST(BatchNormalizationTest, SynchronizedEqualsOneLocation) {
  for (const std::int64_t samples : {4, 5, 2}) {
    for (const int count : {2, 3}) {
      for (const UpdateAt update : {UpdateAt::everywhere, UpdateAt::shards}) {
        SCOPED_TRACE(std::to_string(samples) + " over " + std::to_string(count));
        NormalizedNetwork net(samples);
        Partitioned parts =
            data_parallel(net.graph, Mesh(devices(count)),
                          {.update = update, .partition = {.synchronize_batch_normalization = true}});
        test::expect_same(net.graph, parts, 3, 1e-11, 3);
      }
    }
  }
}

TEST(BatchNormalizationTest, SynchronizedOverAGridEqualsOneLocation) {
  NormalizedNetwork net(5);
  Specs specs{Mesh("data=2,model=2", devices(4))};
  specs.split_samples(net.graph, "data");
  divide_layer(specs, net.graph, "conv", Channels::output, "model");
  Partitioned parts = partition(net.graph, specs, {.synchronize_batch_normalization = true});
  test::expect_same(net.graph, parts, 2, 1e-11, 3);
}

TEST(BatchNormalizationTest, OfItsOwnSamplesAtEachLocationByDefault) {
  // Three samples at one location, two at the other; one channel, one value each.
  Graph graph;
  const Tensor x = graph.input("x", {{5, 1}, DType::f64});
  const Tensor y = nn::batch_normalization(x, nn::Mode::training, {.epsilon = 0, .momentum = 0.5}, "n");
  graph.watch(y);
  Partitioned parts = data_parallel(graph, Mesh(devices(2)));
  verify(parts.graph());
  Evaluator evaluator(parts.graph());
  evaluator.set(parts.at(x), Array(x.info(), {1, 2, 6, 10, 14}));
  const Array normalized = evaluator.step({parts.at(y)})[0];
  const double deviation = std::sqrt(14.0 / 3);  // of 1, 2, 6 around 3
  const double expected[] = {-2 / deviation, -1 / deviation, 3 / deviation, -1, 1};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(normalized.at(i), expected[i], 1e-12);
  // Running statistics follow the mean of the locations', weighted by samples: 3 * 3/5 + 12 * 2/5, and of the
  // unbiased variances 7 and 8.
  const Array mean = assemble(evaluator, parts, graph.find_variable("n/running_mean"));
  const Array variance = assemble(evaluator, parts, graph.find_variable("n/running_variance"));
  EXPECT_NEAR(mean.at(0), 0.5 * (3 * 0.6 + 12 * 0.4), 1e-12);
  EXPECT_NEAR(variance.at(0), 0.5 * 1 + 0.5 * (7 * 0.6 + 8 * 0.4), 1e-12);
}

TEST(BatchNormalizationTest, ByDefaultSendsNoStatisticsBeforeTheUpdate) {
  NormalizedNetwork net(4);
  Partitioned parts = data_parallel(net.graph, Mesh(devices(2)));
  for (std::uint32_t i = 0; i < parts.graph().operator_count(); ++i) {
    const Operator op = parts.graph().op(i);
    if (op.type() != "batch_normalization_training") continue;
    EXPECT_EQ(op.input(0).producer().type(), "conv2d");
  }
  EXPECT_EQ(dump(parts.graph()).find("all_to_all/"), std::string::npos);
  EXPECT_EQ(dump(parts.graph()).find("all_gather/"), std::string::npos);
}

}  // namespace
}  // namespace purine::parallel
