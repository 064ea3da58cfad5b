// A label that is no class ends training before any variable changes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/iteration_error.h"
#include "purine/session/session.h"

namespace purine {
namespace {

constexpr std::int64_t label_batch = 8;
constexpr std::int64_t feature_count = 6;
constexpr std::int64_t class_count = 10;

using VariableBytes = std::map<std::string, std::vector<std::byte>>;

/// A linear classifier with momentum, fed with labels below `classes` but for one.
struct Classifier {
  Graph graph;
  Tensor image;
  Tensor label;
  std::int64_t bad_iteration;

  explicit Classifier(std::int64_t bad_iteration_) : bad_iteration(bad_iteration_) {
    image = graph.input("image", {{label_batch, feature_count}, DType::f32});
    label = graph.input("label", {{label_batch}, DType::i64});
    const auto scope = graph.scope("classifier");
    const Tensor loss = ops::softmax_cross_entropy(nn::linear(image, class_count, {}, "fc"), label, "loss");
    optim::momentum(loss, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-2});
    graph.watch(loss);
  }

  void feed(Session& session) const {
    session.feed(image, [](std::int64_t iteration, std::span<std::byte> bytes) {
      std::vector<float> values(label_batch * feature_count);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>((i * 5 + static_cast<std::size_t>(iteration) * 3) % 13) / 6 - 1;
      }
      std::memcpy(bytes.data(), values.data(), bytes.size());
    });
    session.feed(label, [bad = bad_iteration](std::int64_t iteration, std::span<std::byte> bytes) {
      std::vector<std::int64_t> labels(label_batch);
      for (std::int64_t i = 0; i < label_batch; ++i)
        labels[static_cast<std::size_t>(i)] = (i + iteration) % class_count;
      if (iteration == bad) labels[5] = 12;
      std::memcpy(bytes.data(), labels.data(), bytes.size());
    });
  }
};

VariableBytes values_of(Session& session) {
  VariableBytes values;
  for (const auto& [path, entry] : session.variables().entries()) {
    values[path].assign(entry.bytes().begin(), entry.bytes().end());
  }
  return values;
}

class BadLabelTest : public testing::TestWithParam<int> {};

TEST_P(BadLabelTest, EndsTheRunWithAllVariablesAsTheStepBeforeLeftThem) {
  Runtime runtime({.workers = GetParam()});
  constexpr std::int64_t bad = 3;
  Classifier sound(-1);
  Session reference(runtime, sound.graph);
  sound.feed(reference);
  reference.run_steps(bad - 1);
  const VariableBytes before = values_of(reference);
  reference.run_steps(1);
  const VariableBytes expected = values_of(reference);
  ASSERT_GE(expected.size(), 4) << "a weight and a bias, and the velocity of each";
  for (const auto& [path, bytes] : expected) EXPECT_NE(bytes, before.at(path)) << path << " stays";

  Classifier spoiled(bad);
  Session session(runtime, spoiled.graph);
  spoiled.feed(session);
  std::int64_t steps = 0;
  std::string cause;
  try {
    for (const Step& step : session.run({.steps = 20})) {
      EXPECT_EQ(step.index, steps);
      ++steps;
    }
    ADD_FAILURE() << "no error";
  } catch (const IterationError& error) {
    EXPECT_EQ(error.iteration(), bad);
    cause = error.cause().what();
  }
  EXPECT_EQ(steps, bad);
  // The loss and its gradient both look at the labels; whichever is first to run tells.
  const std::string text = ": label 12 of sample 5 is outside 0..9";
  const std::string of_loss = "[softmax_cross_entropy] classifier/loss on 0/cpu:0" + text;
  const std::string of_gradient =
      "[softmax_cross_entropy_gradient] gradient/classifier/loss on 0/cpu:0" + text;
  EXPECT_TRUE(cause == of_loss || cause == of_gradient) << cause;
  EXPECT_EQ(values_of(session), expected);
}

INSTANTIATE_TEST_SUITE_P(Workers, BadLabelTest, testing::Values(1, 2, 4, 16));

}  // namespace
}  // namespace purine
