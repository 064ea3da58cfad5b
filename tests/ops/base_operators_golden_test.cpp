// Arithmetic, activations, reductions, losses, shapes and optimisers beside PyTorch's:
// golden/make_base_operators.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/gradient/gradient.h"
#include "purine/io/file.h"
#include "purine/ops/activation.h"
#include "purine/ops/bias.h"
#include "purine/ops/binary.h"
#include "purine/ops/cast.h"
#include "purine/ops/clip.h"
#include "purine/ops/concat.h"
#include "purine/ops/constant.h"
#include "purine/ops/iteration.h"
#include "purine/ops/loss.h"
#include "purine/ops/pad.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/ops/softmax.h"
#include "purine/ops/sum_n.h"
#include "purine/ops/unary.h"
#include "purine/ops/update.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using nlohmann::json;
using test::Array;

json read(const std::string& name) {
  return parse_json(io::read_file("tests/ops/golden/" + name));
}

/// The same values as the script's `value`.
double value(std::int64_t index, int stream) {
  return static_cast<double>((index * 619 + (stream + 2) * 271) % 1009) / 1009 * 2 - 1;
}

Array made_array(const TensorInfo& info, int stream, double scale = 1, bool positive = false) {
  Array array(info);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double plain = value(i, stream) * scale;
    array.set(i, positive ? std::abs(plain) + 0.5 : plain);
  }
  return array;
}

Shape shape_of(const json& extents) {
  return Shape(extents.get<std::vector<std::int64_t>>());
}

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    if (name_of(dtype) == name) return dtype;
  }
  ADD_FAILURE() << name;
  return DType::f32;
}

Tensor build(const json& made, const std::vector<Tensor>& in, Tensor labels) {
  const std::string name = made.at("operator");
  const json& options = made.at("options");
  if (name == "add") return ops::add(in[0], in[1]);
  if (name == "subtract") return ops::subtract(in[0], in[1]);
  if (name == "multiply") return ops::multiply(in[0], in[1]);
  if (name == "divide") return ops::divide(in[0], in[1]);
  if (name == "square") return ops::square(in[0]);
  if (name == "sqrt") return ops::sqrt(in[0]);
  if (name == "exp") return ops::exp(in[0]);
  if (name == "log") return ops::log(in[0]);
  if (name == "relu") return ops::relu(in[0]);
  if (name == "leaky_relu") return ops::leaky_relu(in[0], options.at("slope"));
  if (name == "sigmoid") return ops::sigmoid(in[0]);
  if (name == "tanh") return ops::tanh(in[0]);
  if (name == "gelu") return ops::gelu(in[0], options.at("approximate"));
  if (name == "clip") return ops::clip(in[0], options.at("low"), options.at("high"));
  if (name == "softmax") return ops::softmax(in[0], options.at("axis"));
  if (name == "log_softmax") return ops::log_softmax(in[0], options.at("axis"));
  if (name == "sum") return ops::sum(in[0], options.at("axes"), options.at("keep"));
  if (name == "mean") return ops::mean(in[0], options.at("axes"), options.at("keep"));
  if (name == "concat") return ops::concat({in[0], in[1]}, options.at("axis"));
  if (name == "slice") return ops::slice(in[0], options.at("axis"), options.at("begin"), options.at("end"));
  if (name == "pad") return ops::pad(in[0], options.at("before"), options.at("after"), options.at("value"));
  if (name == "transpose") return ops::transpose(in[0], options.at("permutation"));
  if (name == "reshape") return ops::reshape(in[0], options.at("shape"));
  if (name == "bias") return ops::bias(in[0], in[1], options.at("axis"));
  if (name == "broadcast_to") return ops::broadcast_to(in[0], shape_of(options.at("shape")));
  if (name == "cast") return ops::cast(in[0], dtype_of(options.at("dtype")));
  if (name == "sum_n") return ops::sum_n(in);
  if (name == "split") {
    return ops::split(in[0], options.at("axis"), options.at("sizes")).at(options.at("part"));
  }
  if (name == "softmax_cross_entropy") return ops::softmax_cross_entropy(in[0], labels);
  if (name == "mean_squared_error") return ops::mean_squared_error(in[0], in[1]);
  EXPECT_EQ(name, "accuracy");
  return ops::accuracy(in[0], labels, options.at("top"));
}

/// `allowed` is relative to the largest value; the file has 12 digits.
void expect_numbers(const Array& got, const json& expected, double allowed, const std::string& what) {
  ASSERT_EQ(got.shape().text(), shape_of(expected.at("shape")).text()) << what;
  const std::vector<double> values = expected.at("values");
  double largest = 1;
  for (const double number : values) largest = std::max(largest, std::abs(number));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(got.at(static_cast<std::int64_t>(i)), values[i], allowed * largest)
        << what << " element " << i;
  }
}

class BaseOperatorsGoldenTest : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, BaseOperatorsGoldenTest, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST_P(BaseOperatorsGoldenTest, ValuesAndGradientsAreThoseOfPyTorch) {
  const DType dtype = GetParam();
  const json cases = read("base_operators.json");
  ASSERT_GT(cases.size(), 50U);
  for (const json& made : cases) {
    SCOPED_TRACE(made.at("name").get<std::string>());
    const double scale = made.value("scale", 1.0);
    Graph graph;
    test::Evaluator evaluator(graph);
    std::vector<Tensor> inputs;
    for (const json& extents : made.at("inputs")) {
      const auto stream = static_cast<int>(inputs.size());
      inputs.push_back(graph.input("input." + std::to_string(stream), {shape_of(extents), dtype}));
      evaluator.set(inputs.back(),
                    made_array(inputs.back().info(), stream, scale, made.contains("positive")));
    }
    Tensor labels;
    if (made.contains("labels")) {
      const std::vector<double> numbers = made.at("labels");
      labels = graph.input("labels", {{static_cast<std::int64_t>(numbers.size())}, DType::i64});
      evaluator.set(labels, Array(labels.info(), numbers));
    }
    const Tensor output = build(made, inputs, labels);
    // f32: inputs, rounded to half an epsilon, are up to `scale` and exponentials multiply their errors by
    // it; sums have at most 24 terms.
    const bool is_double = dtype == DType::f64 && output.dtype() == DType::f64;
    const double allowed = is_double ? 1e-11 : 1.2e-7 * (32 + 4 * std::min(scale, 8.0));
    expect_numbers(evaluator.compute(output), made.at("output"), allowed, "output");
    if (!made.contains("gradients")) continue;
    const Tensor weights = graph.input("weights", output.info());
    evaluator.set(weights, made_array(weights.info(), -1));
    const std::vector<Tensor> found = gradients(ops::sum(ops::multiply(output, weights)), inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      expect_numbers(evaluator.compute(found[i]), made.at("gradients")[i], allowed,
                     "gradient " + std::to_string(i));
    }
  }
}

TEST_P(BaseOperatorsGoldenTest, OptimisersStepAsPyTorchs) {
  const DType dtype = GetParam();
  for (const json& made : read("optimizers.json")) {
    SCOPED_TRACE(made.at("name").get<std::string>());
    const json& options = made.at("options");
    const std::string kind = made.at("operator");
    const TensorInfo info{{7}, dtype};
    Graph graph;
    const Variable weight = graph.variable("weight", info, ops::make_constant(info, 0));
    const Variable first = graph.variable("first", info, ops::make_constant(info, 0));
    const Variable second = graph.variable("second", info, ops::make_constant(info, 0));
    const Tensor gradient = graph.input("gradient", info);
    const Tensor rate = graph.input("rate", {{}, dtype});
    if (kind == "sgd") {
      graph.set_next(weight, ops::sgd_update(weight, gradient, rate, {options.at("weight_decay")}));
    } else if (kind == "momentum") {
      const auto next = ops::momentum_update(weight, first, gradient, rate,
                                             {.momentum = options.at("momentum"),
                                              .weight_decay = options.at("weight_decay"),
                                              .nesterov = options.at("nesterov")});
      graph.set_next(weight, next.weight);
      graph.set_next(first, next.velocity);
    } else {
      const auto next = ops::adam_update(weight, first, second, gradient, rate, ops::iteration(graph),
                                         {.beta1 = options.at("beta1"),
                                          .beta2 = options.at("beta2"),
                                          .epsilon = options.at("epsilon"),
                                          .weight_decay = options.at("weight_decay"),
                                          .decoupled = options.at("decoupled")});
      graph.set_next(weight, next.weight);
      graph.set_next(first, next.first_moment);
      graph.set_next(second, next.second_moment);
    }
    test::Evaluator evaluator(graph);
    evaluator.set(weight, made_array(info, 0));
    int step = 0;
    for (const json& expected : made.at("weights")) {
      evaluator.set(gradient, made_array(info, step + 1));
      evaluator.set(rate,
                    Array({{}, dtype}, {made.at("rates")[static_cast<std::size_t>(step)].get<double>()}));
      evaluator.step();
      // f32: six steps of some ten operations on numbers up to 2.
      const double allowed = dtype == DType::f64 ? 1e-11 : 1.2e-7 * 60;
      expect_numbers(evaluator.compute(weight), {{"shape", {7}}, {"values", expected}}, allowed,
                     "after step " + std::to_string(step));
      ++step;
    }
  }
}

}  // namespace
}  // namespace purine
