#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/gradient/gradient.h"
#include "purine/io/file.h"
#include "purine/models/models.h"
#include "tests/support/evaluate.h"

namespace purine::models {
namespace {

using test::Array;
using test::Evaluator;

/// The formula of golden/make_networks.py.
double value(std::int64_t index, std::int64_t order) {
  return static_cast<double>((index * 7919 + order * 104729) % 1009) / 504 - 1;
}

Array values(const TensorInfo& info, std::int64_t order, double factor, double shift = 0) {
  Array array(info);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, shift + factor * value(i, order));
  return array;
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What make_networks.py gives the variable that is made as number `order`.
Array variable_values(Variable variable, std::int64_t order) {
  const Shape& shape = variable.shape();
  if (shape.rank() > 1) {
    return values(variable.info(), order,
                  std::sqrt(6.0 * static_cast<double>(shape[0]) / static_cast<double>(shape.elements())));
  }
  const bool about_one =
      ends_with(variable.path(), "running_variance") || ends_with(variable.path(), "scale");
  return about_one ? values(variable.info(), order, 0.25, 1) : values(variable.info(), order, 0.1);
}

double norm(const Array& array) {
  double sum = 0;
  for (const double element : array.values()) sum += element * element;
  return std::sqrt(sum);
}

class NetworkTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, NetworkTest,
                         ::testing::Values("alexnet", "alexnet_grouped", "vgg16", "lenet",
                                           "network_in_network", "googlenet", "googlenet_bn", "resnet18",
                                           "resnet18_training", "resnet50"),
                         [](const auto& test) { return std::string(test.param); });

// Logits, loss, the gradient of every parameter and the running statistics, for the same weights and images.
TEST_P(NetworkTest, ComputesWhatPyTorchs) {
  const nlohmann::json golden = parse_json(io::read_file("tests/models/golden/networks.json")).at(GetParam());
  const bool training = golden["training"].get<bool>();
  const auto extents = golden["image"].get<std::vector<std::int64_t>>();
  const std::int64_t classes = 7;

  Graph graph;
  const Tensor image = graph.input("image", {Shape(extents), DType::f32});
  const Tensor label = graph.input("label", {{extents[0]}, DType::i64});
  const std::string name = std::string(GetParam()).substr(0, std::string_view(GetParam()).find("_training"));
  const Network network = build(name, image, classes, training ? nn::Mode::training : nn::Mode::inference);
  const Tensor loss = classification_loss(network, label);

  Evaluator evaluator(graph);
  evaluator.set(image, values(image.info(), 1000, 1));
  Array labels(label.info());
  for (std::int64_t i = 0; i < extents[0]; ++i) labels.set(i, static_cast<double>(i % classes));
  evaluator.set(label, labels);
  std::vector<Tensor> parameters;
  std::vector<Tensor> wanted = {network.logits, loss};
  std::int64_t order = 0;
  for (const Variable variable : graph.variables()) {
    evaluator.set(variable, variable_values(variable, ++order));
    if (variable.trainable()) parameters.push_back(variable);
    if (variable.has_next()) wanted.push_back(variable.next());
  }
  const std::vector<Tensor> slopes = gradients(loss, parameters);
  const std::size_t first_gradient = wanted.size();
  wanted.insert(wanted.end(), slopes.begin(), slopes.end());
  const std::vector<Array> got = evaluator.compute(wanted);

  const auto expect_near = [](double value, const nlohmann::json& expected, double scale,
                              const std::string& what) {
    EXPECT_NEAR(value, expected.get<double>(), 1e-3 * scale) << what;
  };
  double largest = 0;
  for (const nlohmann::json& logit : golden["logits"])
    largest = std::max(largest, std::abs(logit.get<double>()));
  ASSERT_EQ(got[0].elements(), static_cast<std::int64_t>(golden["logits"].size()));
  for (std::int64_t i = 0; i < got[0].elements(); ++i) {
    expect_near(got[0].at(i), golden["logits"][static_cast<std::size_t>(i)], largest,
                "logit " + std::to_string(i));
  }
  expect_near(got[1].at(0), golden["loss"], golden["loss"].get<double>(), "loss");
  ASSERT_EQ(slopes.size(), golden["gradient_norms"].size());
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const nlohmann::json& expected = golden["gradient_norms"][i];
    expect_near(norm(got[first_gradient + i]), expected, expected.get<double>(),
                "gradient of " + parameters[i].path());
  }
  if (!training) return;
  ASSERT_EQ(first_gradient - 2, golden["running"].size());
  for (std::size_t i = 2; i < first_gradient; ++i) {
    const nlohmann::json& expected = golden["running"][i - 2];
    expect_near(norm(got[i]), expected, expected.get<double>(), "running statistic " + std::to_string(i));
  }
}

}  // namespace
}  // namespace purine::models
