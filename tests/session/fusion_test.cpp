// Operators that run as one, run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/gradient/gradient.h"
#include "purine/models/models.h"
#include "purine/ops/cast.h"
#include "purine/ops/concat.h"
#include "purine/ops/convolution.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/random.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/unary.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"

namespace purine {
namespace {

using Bytes = std::vector<std::byte>;

/// Operators of a session's program that run as several.
int fused_operators(const Session& session) {
  int count = 0;
  for (std::uint32_t op = 0; op < session.program().operator_count(); ++op) {
    count += session.program().path(op).find(" + ") != std::string::npos ? 1 : 0;
  }
  return count;
}

/// Trains for some steps; the losses, and the variables by path.
struct Trained {
  std::vector<double> losses;
  std::map<std::string, Bytes> variables;
  int fused = 0;

  Trained(std::string_view model, bool fuse, bool poison_freed) {
    Graph graph;
    const data::Batch batch =
        data::synthetic(graph, {.batch = 6, .image = {3, 32, 32}, .classes = 10, .seed = 3});
    const Tensor loss = ops::softmax_cross_entropy(models::build(model, batch.image, 10).logits, batch.label);
    optim::momentum(loss, {.learning_rate = 0.05, .momentum = 0.9});
    graph.watch(loss);
    Runtime runtime({.workers = 2});
    Session session(runtime, graph, {.fuse = fuse, .poison_freed = poison_freed});
    fused = fused_operators(session);
    for (const Step& step : session.run({.steps = 4})) losses.push_back(step.value(loss));
    for (const auto& [path, entry] : session.variables().entries()) {
      variables[path] = Bytes(entry.bytes().begin(), entry.bytes().end());
    }
  }
};

TEST(SessionFusionTest, NormalizationWithARectifierGivesTheSameBits) {
  const Trained apart("small_convnet", false, false);
  EXPECT_EQ(apart.fused, 0);
  for (const bool poison_freed : {false, true}) {
    const Trained together("small_convnet", true, poison_freed);
    EXPECT_EQ(together.fused, 6);
    EXPECT_EQ(together.losses, apart.losses);
    EXPECT_TRUE(together.variables == apart.variables);
  }
  EXPECT_NE(apart.losses.front(), apart.losses.back());
}

/// An inception module after a convolution; the gradients of the mean of its squares by all weights, in f64
/// or f32.
struct Module {
  std::vector<std::vector<double>> gradients;
  int fused = 0;

  Module(DType dtype, bool fuse) {
    Graph graph;
    const Tensor x = graph.input("x", {{2, 3, 8, 9}, dtype});
    std::vector<Tensor> weights;
    const auto convolve = [&](Tensor image, std::int64_t channels, std::int64_t kernel) {
      const TensorInfo info{{channels, image.shape()[1], kernel, kernel}, dtype};
      const std::string name = "weight" + std::to_string(weights.size());
      weights.push_back(graph.variable(name, info, ops::make_random_normal(info, 0, 0.5)));
      const std::int64_t around = kernel / 2;
      return ops::conv2d(image, weights.back(), {}, {.padding = {around, around, around, around}});
    };
    const Tensor image = convolve(x, 20, 3);
    const Tensor pooled =
        ops::max_pool2d(image, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}});
    const Tensor joined = ops::concat({convolve(image, 5, 1), convolve(convolve(image, 7, 1), 6, 3),
                                       convolve(convolve(image, 1, 1), 4, 3), convolve(pooled, 3, 1)},
                                      1);
    const std::vector<Tensor> made = purine::gradients(ops::mean(ops::square(joined)), weights);
    for (const Tensor gradient : made) graph.watch(ops::cast(gradient, DType::f32));
    Runtime runtime({.workers = 2});
    Session session(runtime, graph, {.fuse = fuse});
    fused = fused_operators(session);
    session.feed(x, [&](std::int64_t, std::span<std::byte> bytes) {
      for (std::int64_t i = 0; i < x.shape().elements(); ++i) {
        const double value = static_cast<double>(i * 7 % 23) / 11 - 1;
        const float single = static_cast<float>(value);
        const auto place = bytes.subspan(static_cast<std::size_t>(i) * size_of(dtype), size_of(dtype));
        if (dtype == DType::f64) {
          std::memcpy(place.data(), &value, place.size());
        } else {
          std::memcpy(place.data(), &single, place.size());
        }
      }
    });
    for (const Step& step : session.run({.steps = 1})) {
      for (const Tensor watched : graph.watched()) {
        const std::span<const float> values = step.values(watched);
        gradients.emplace_back(values.begin(), values.end());
      }
    }
  }
};

TEST(SessionFusionTest, SiblingConvolutionsGiveTheSameGradients) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Module apart(dtype, false);
    const Module together(dtype, true);
    EXPECT_EQ(apart.fused, 0);
    EXPECT_EQ(together.fused, 2);
    ASSERT_EQ(together.gradients.size(), 7);
    // Sums of some hundred terms, in another order: within that many roundings of the largest. What is
    // watched is f32 in any case.
    constexpr double allowed = 500 * 6e-8;
    for (std::size_t i = 0; i < together.gradients.size(); ++i) {
      double largest = 0;
      for (const double value : apart.gradients[i]) largest = std::max(largest, std::abs(value));
      EXPECT_GT(largest, 0);
      for (std::size_t k = 0; k < together.gradients[i].size(); ++k) {
        ASSERT_NEAR(together.gradients[i][k], apart.gradients[i][k], allowed * largest) << i << ", " << k;
      }
    }
  }
}

/// A convolution, rectified and pooled in windows that overlap: the maxima, and the gradients of the mean of
/// their squares.
struct Pooled {
  std::vector<std::vector<float>> values;
  std::size_t arena = 0;

  Pooled(bool fuse, bool poison_freed) {
    Graph graph;
    const data::Batch batch =
        data::synthetic(graph, {.batch = 4, .image = {3, 23, 21}, .classes = 10, .seed = 5});
    const TensorInfo info{{8, 3, 3, 3}, DType::f32};
    const Variable weight = graph.variable("weight", info, ops::make_random_normal(info, 0, 0.5));
    const Tensor rectified = ops::relu(ops::conv2d(batch.image, weight));
    const Tensor maxima = ops::max_pool2d(
        rectified, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 0, 1, 1}, .ceil_mode = true});
    graph.watch(maxima);
    graph.watch(purine::gradients(ops::mean(ops::square(maxima)), std::vector<Tensor>{weight})[0]);
    Runtime runtime({.workers = 2});
    Session session(runtime, graph, {.fuse = fuse, .poison_freed = poison_freed});
    arena = session.program().memory()[0].arena;
    for (const Step& step : session.run({.steps = 1})) {
      for (const Tensor watched : graph.watched()) {
        const std::span<const float> found = step.values(watched);
        values.emplace_back(found.begin(), found.end());
      }
    }
  }
};

TEST(SessionFusionTest, ARectifierAfterPoolingGivesTheSameInLessMemory) {
  const Pooled before(false, false);
  for (const bool poison_freed : {false, true}) {
    const Pooled after(true, poison_freed);
    EXPECT_EQ(after.values, before.values);
    EXPECT_LT(after.arena, before.arena);
  }
  EXPECT_GT(std::count(before.values[0].begin(), before.values[0].end(), 0.0F), 10);
  EXPECT_GT(std::count_if(before.values[1].begin(), before.values[1].end(), [](float v) { return v != 0; }),
            100);
}

TEST(SessionFusionTest, ANetworkWithPooledRectifiersTrainsTheSame) {
  const Trained apart("network_in_network", false, false);
  for (const bool poison_freed : {false, true}) {
    const Trained together("network_in_network", true, poison_freed);
    EXPECT_EQ(together.losses, apart.losses);
    EXPECT_TRUE(together.variables == apart.variables);
  }
}

}  // namespace
}  // namespace purine
