// The operators of convolutional networks and their gradients beside PyTorch's:
// golden/make_image_operators.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "purine/ops/constant.h"
#include "purine/ops/convolution.h"
#include "purine/ops/matmul.h"
#include "purine/ops/normalization.h"
#include "purine/ops/pooling.h"
#include "purine/ops/unbiased_variance.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using nlohmann::json;
using test::Array;

Shape image_shape(const json& extents) {
  return Shape(extents.get<std::vector<std::int64_t>>());
}

/// The same values as the script's `tensor`.
Array image_array(const Shape& shape, int stream, const json& levels, DType dtype) {
  Array array({shape, dtype});
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    double value = static_cast<double>((i * 619 + (stream + 2) * 271) % 1009) / 1009 * 2 - 1;
    if (!levels.is_null()) value = std::nearbyint(value * levels.get<double>()) / levels.get<double>();
    array.set(i, value);
  }
  return array;
}

ops::Pool2dOptions pool_options(const json& options) {
  return {.kernel = options.at("kernel"),
          .stride = options.at("stride"),
          .padding = options.at("padding"),
          .ceil_mode = options.at("ceil_mode"),
          .count_include_pad = options.value("count_include_pad", true)};
}

/// A case's operator; more of its results go into `extra`.
Tensor build(const json& made, const std::vector<Tensor>& inputs, std::vector<Tensor>& extra) {
  const std::string name = made.at("operator");
  const json& options = made.at("options");
  const Tensor third = inputs.size() > 2 ? inputs[2] : Tensor{};
  if (name == "conv2d") {
    return ops::conv2d(inputs[0], inputs[1], third,
                       {.stride = options.at("stride"),
                        .padding = options.at("padding"),
                        .dilation = options.at("dilation"),
                        .groups = options.at("groups")});
  }
  if (name == "matmul") {
    return ops::matmul(inputs[0], inputs[1],
                       {.transpose_a = options.at("transpose_a"),
                        .transpose_b = options.at("transpose_b"),
                        .sum_batch = options.at("sum_batch")});
  }
  if (name == "linear") return ops::linear(inputs[0], inputs[1], third);
  if (name == "max_pool2d") return ops::max_pool2d(inputs[0], pool_options(options));
  if (name == "average_pool2d") return ops::average_pool2d(inputs[0], pool_options(options));
  if (name == "global_average_pool2d") return ops::global_average_pool2d(inputs[0]);
  if (name == "local_response_normalization") {
    return ops::local_response_normalization(inputs[0], {.size = options.at("size"),
                                                         .alpha = options.at("alpha"),
                                                         .beta = options.at("beta"),
                                                         .k = options.at("k")});
  }
  const ops::BatchNormalizationOptions normalization{options.at("epsilon")};
  if (name == "batch_normalization_inference") {
    return ops::batch_normalization_inference(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4],
                                              normalization);
  }
  EXPECT_EQ(name, "batch_normalization_training");
  const auto result = ops::batch_normalization_training(inputs[0], inputs[1], inputs[2], normalization);
  Graph& graph = inputs[0].graph();
  const Tensor running_mean = ops::constant(graph, result.mean.info(), 0.25);
  const Tensor running_variance = ops::constant(graph, result.mean.info(), 0.75);
  const double momentum = options.at("momentum");
  extra = {
      result.mean, result.variance, ops::moving_average(running_mean, result.mean, momentum),
      ops::moving_average(running_variance, ops::unbiased_variance(result.variance, inputs[0]), momentum)};
  return result.y;
}

void expect_equal(const Array& actual, const json& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.shape().text(), image_shape(expected.at("shape")).text()) << what;
  const auto values = expected.at("values").get<std::vector<double>>();
  for (std::int64_t i = 0; i < actual.elements(); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    ASSERT_NEAR(actual.at(i), value, tolerance * (1 + std::abs(value))) << what << ", element " << i;
  }
}

void check_case(const json& made, DType dtype, double tolerance) {
  Graph graph;
  std::vector<Tensor> inputs;
  const json& shapes = made.at("inputs");
  const json& expected = made.at("gradients");
  const json levels = made.value("levels", json());
  test::Evaluator evaluator(graph);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Shape shape = image_shape(shapes[k]);
    inputs.push_back(graph.input("input_" + std::to_string(k + 100), {shape, dtype}));
    Array value = image_array(shape, static_cast<int>(k), levels, dtype);
    const bool is_constant = expected[k].is_null();
    for (std::int64_t i = 0; is_constant && i < value.elements(); ++i) {
      value.set(i, std::abs(value.at(i)) + 0.5);
    }
    evaluator.set(inputs.back(), value);
  }
  std::vector<Tensor> extra;
  const Tensor y = build(made, inputs, extra);
  const Tensor output_gradient = graph.input("output_gradient", y.info());
  evaluator.set(output_gradient, image_array(y.shape(), -1, {}, dtype));
  const Operator op = y.producer();
  std::vector<Tensor> output_gradients(static_cast<std::size_t>(op.output_count()));
  output_gradients[0] = output_gradient;
  const std::vector<bool> needed(inputs.size(), true);
  const std::vector<Tensor> gradients = op.contract().gradient({op, output_gradients, needed});

  expect_equal(evaluator.compute(y), made.at("output"), tolerance, "output");
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (expected[k].is_null()) continue;
    ASSERT_TRUE(gradients[k].valid()) << "gradient of input " << k;
    expect_equal(evaluator.compute(gradients[k]), expected[k], tolerance,
                 "gradient of input " + std::to_string(k));
  }
  for (std::size_t i = 0; i < extra.size(); ++i) {
    expect_equal(evaluator.compute(extra[i]), made.at("extra")[i], tolerance, "extra " + std::to_string(i));
  }
}

class ImageOperatorsGoldenTest : public testing::TestWithParam<DType> {};

TEST_P(ImageOperatorsGoldenTest, EqualPyTorch) {
  const json cases = parse_json(io::read_file("tests/ops/golden/image_operators.json"));
  EXPECT_EQ(cases.size(), 75U);
  for (const json& made : cases) {
    SCOPED_TRACE(made.at("operator").get<std::string>() + " " + made.at("name").get<std::string>());
    check_case(made, GetParam(), GetParam() == DType::f64 ? 1e-10 : 5e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ImageOperatorsGoldenTest, testing::Values(DType::f64, DType::f32),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

}  // namespace
}  // namespace purine
