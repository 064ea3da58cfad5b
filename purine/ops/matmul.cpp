#include "purine/ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"

namespace purine::ops {
namespace {

std::span<const std::int64_t> batch_of(const Shape& shape) {
  return shape.extents().first(static_cast<std::size_t>(shape.rank() - 2));
}

/// Rows and columns of the matrices in the last two dimensions, after transposing.
std::array<std::int64_t, 2> matrix_of(const Shape& shape, bool transpose) {
  const std::int64_t rows = shape[shape.rank() - 2];
  const std::int64_t columns = shape[shape.rank() - 1];
  if (transpose) return {columns, rows};
  return {rows, columns};
}

Shape with_matrix(std::span<const std::int64_t> batch, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> extents(batch.begin(), batch.end());
  extents.push_back(rows);
  extents.push_back(columns);
  return Shape(extents);
}

}  // namespace

Tensor matmul(Tensor a, Tensor b, MatmulOptions options, std::string_view name) {
  return a.graph().add(std::make_shared<Matmul>(options), {a, b}, name).output();
}

Tensor linear(Tensor x, Tensor weight, Tensor bias, std::string_view name) {
  const auto contract = std::make_shared<Linear>();
  Graph& graph = x.graph();
  if (!bias) return graph.add(contract, {x, weight}, name).output();
  return graph.add(contract, {x, weight, bias}, name).output();
}

std::string Matmul::attributes() const {
  return fmt::format("transpose_a={} transpose_b={} sum_batch={}", options_.transpose_a, options_.transpose_b,
                     options_.sum_batch);
}

std::vector<TensorInfo> Matmul::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  const TensorInfo& a = inputs[0];
  const TensorInfo& b = inputs[1];
  check_floating(type(), a, "a");
  check_same_dtype(type(), a, "a", b, "b");
  if (a.shape.rank() < 2 || b.shape.rank() < 2) {
    throw Error(type(), fmt::format("a is {}, b is {}; both need rank 2 or more", a.text(), b.text()),
                "a vector is a matrix of one row or column: ops::reshape");
  }
  const auto [rows, inner] = matrix_of(a.shape, options_.transpose_a);
  const auto [b_inner, columns] = matrix_of(b.shape, options_.transpose_b);
  if (inner != b_inner) {
    throw Error(type(),
                fmt::format("a is {}{}, b is {}{}: a's {} columns do not meet b's {} rows", a.text(),
                            options_.transpose_a ? " transposed" : "", b.text(),
                            options_.transpose_b ? " transposed" : "", inner, b_inner),
                "transpose_a and transpose_b exchange the last two dimensions");
  }
  const auto a_batch = batch_of(a.shape);
  const auto b_batch = batch_of(b.shape);
  const bool same_batch = std::equal(a_batch.begin(), a_batch.end(), b_batch.begin(), b_batch.end());
  if (!same_batch && (options_.sum_batch || (a.shape.rank() > 2 && b.shape.rank() > 2))) {
    throw Error(type(),
                "a is " + a.text() + ", b is " + b.text() + ": the dimensions before the last two differ",
                options_.sum_batch ? "a sum over the batch needs the same ones"
                                   : "they must be the same, or one of a and b a single matrix");
  }
  if (options_.sum_batch) return {{{rows, columns}, a.dtype}};
  return {{with_matrix(a.shape.rank() > 2 ? a_batch : b_batch, rows, columns), a.dtype}};
}

std::vector<Tensor> Matmul::gradient(const GradientContext& context) const {
  // With A and B the factors as they are multiplied, G the output's gradient: dA = G B^T, dB = A^T G, summed
  // over the batch where the factor is a single matrix. A factor held transposed gets the transposed
  // gradient: (G B^T)^T = B G^T. The gradient of a sum over the batch is G for every element.
  const Tensor a = context.input(0);
  const Tensor b = context.input(1);
  const Tensor gradient = context.output_gradient(0);
  const bool batched = gradient.shape().rank() > 2;
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) {
    const bool sum = batched && a.shape().rank() == 2;
    gradients[0] = options_.transpose_a ? matmul(b, gradient, {options_.transpose_b, true, sum})
                                        : matmul(gradient, b, {false, !options_.transpose_b, sum});
  }
  if (context.needs(1)) {
    const bool sum = batched && b.shape().rank() == 2;
    gradients[1] = options_.transpose_b ? matmul(gradient, a, {true, options_.transpose_a, sum})
                                        : matmul(a, gradient, {!options_.transpose_a, false, sum});
  }
  return gradients;
}

std::vector<SplitRule> Matmul::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const int a_rank = a.rank();
  const int b_rank = b.rank();
  const int rank = options_.sum_batch ? 2 : std::max(a_rank, b_rank);
  const int a_rows = options_.transpose_a ? a_rank - 1 : a_rank - 2;
  const int a_inner = options_.transpose_a ? a_rank - 2 : a_rank - 1;
  const int b_inner = options_.transpose_b ? b_rank - 1 : b_rank - 2;
  const int b_columns = options_.transpose_b ? b_rank - 2 : b_rank - 1;
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < std::max(a_rank, b_rank) - 2; ++dimension) {
    rules.push_back({{a_rank > 2 ? dimension : whole, b_rank > 2 ? dimension : whole},
                     {options_.sum_batch ? SplitRule::partial : dimension},
                     (a_rank > 2 ? a : b)[dimension],
                     false});
  }
  rules.push_back({{a_rows, whole}, {rank - 2}, a[a_rows], false});
  rules.push_back({{whole, b_columns}, {rank - 1}, b[b_columns], false});
  rules.push_back({{a_inner, b_inner}, {SplitRule::partial}, a[a_inner], false});
  return rules;
}

Cost Matmul::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const auto [rows, inner] = matrix_of(a, options_.transpose_a);
  const std::int64_t columns = matrix_of(b, options_.transpose_b)[1];
  double products = 1;
  for (const std::int64_t extent : batch_of(a.rank() > 2 ? a : b)) products *= static_cast<double>(extent);
  cost.operations = 2 * products * static_cast<double>(rows * inner) * static_cast<double>(columns);
  return cost;
}

std::vector<TensorInfo> Linear::infer(std::span<const TensorInfo> inputs) const {
  if (inputs.size() != 3) check_input_count(type(), inputs, 2);
  const TensorInfo& x = inputs[0];
  const TensorInfo& weight = inputs[1];
  check_floating(type(), x, "x");
  check_same_dtype(type(), x, "x", weight, "weight");
  if (x.shape.rank() < 2) throw Error(type(), fmt::format("x is {}, rank 2 or more is needed", x.text()));
  if (weight.shape.rank() != 2) {
    throw Error(type(), fmt::format("weight is {}, rank 2 is needed", weight.text()));
  }
  const int last = x.shape.rank() - 1;
  if (weight.shape[1] != x.shape[last]) {
    throw Error(
        type(),
        "weight has " + std::to_string(weight.shape[1]) + " input features, x has " +
            std::to_string(x.shape[last]),
        "x is [..., features], weight is [output features, input features]; ops::flatten makes images "
        "vectors");
  }
  if (inputs.size() == 3) {
    check_same_dtype(type(), x, "x", inputs[2], "bias");
    if (!(inputs[2].shape == Shape{weight.shape[0]})) {
      throw Error(type(), "bias is " + inputs[2].text() + ", the weight's " +
                              std::to_string(weight.shape[0]) + " output features need [" +
                              std::to_string(weight.shape[0]) + "]");
    }
  }
  Shape shape = x.shape;
  shape.set(last, weight.shape[0]);
  return {{shape, x.dtype}};
}

std::vector<Tensor> Linear::gradient(const GradientContext& context) const {
  const Tensor x = context.input(0);
  const Tensor weight = context.input(1);
  const Tensor gradient = context.output_gradient(0);
  std::vector<Tensor> gradients(static_cast<std::size_t>(context.op().input_count()));
  if (context.needs(0)) gradients[0] = matmul(gradient, weight);
  if (context.needs(1)) {
    gradients[1] = matmul(gradient, x, {.transpose_a = true, .sum_batch = x.shape().rank() > 2});
  }
  if (gradients.size() == 3 && adds_bias_ && context.needs(2)) {
    std::vector<int> axes;
    for (int axis = 0; axis < x.shape().rank() - 1; ++axis) axes.push_back(axis);
    gradients[2] = sum(gradient, axes);
  }
  return gradients;
}

std::vector<SplitRule> Linear::split_rules(std::span<const TensorInfo> inputs) const {
  constexpr int whole = SplitRule::whole;
  const bool has_bias = inputs.size() == 3;
  const auto rule = [&](int x, int weight, int bias, int output, std::int64_t units) {
    std::vector<int> dimensions{x, weight};
    if (has_bias) dimensions.push_back(bias);
    return SplitRule{dimensions, {output}, units, false};
  };
  const int last = inputs[0].shape.rank() - 1;
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < last; ++dimension) {
    rules.push_back(rule(dimension, whole, whole, dimension, inputs[0].shape[dimension]));
  }
  rules.push_back(rule(whole, 0, 0, last, inputs[1].shape[0]));
  rules.push_back(rule(last, 1, whole, SplitRule::partial, inputs[1].shape[1]));
  return rules;
}

ContractPtr Linear::piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const {
  if (rule.outputs[0] == SplitRule::partial && rule.inputs.size() == 3 && piece.begin > 0) {
    return std::make_shared<Linear>(false);
  }
  return self();
}

Cost Linear::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations =
      2.0 * static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(inputs[1].shape[1]);
  return cost;
}

namespace {

Sample matmul_sample(std::string name, MatmulOptions options, Shape a, Shape b) {
  return {std::move(name),
          [options](DType) { return std::make_shared<Matmul>(options); },
          {{{a, DType::f32}}, {{b, DType::f32}}},
          true,
          true};
}

Sample linear_sample(std::string name, Shape x, Shape weight, bool has_bias) {
  std::vector<SampleInput> inputs{{{x, DType::f32}}, {{weight, DType::f32}}};
  if (has_bias) inputs.push_back({{{weight[0]}, DType::f32}});
  return {std::move(name), [](DType) { return std::make_shared<Linear>(); }, std::move(inputs), true, true};
}

}  // namespace

void register_matmul(Registry& registry) {
  registry.add(
      "matmul",
      {matmul_sample("matrices", {}, {3, 4}, {4, 5}),
       matmul_sample("a_transposed", {.transpose_a = true}, {4, 3}, {4, 5}),
       matmul_sample("b_transposed", {.transpose_b = true}, {3, 4}, {5, 4}),
       matmul_sample("both_transposed", {.transpose_a = true, .transpose_b = true}, {4, 3}, {5, 4}),
       matmul_sample("batch", {}, {2, 3, 4}, {2, 4, 5}),
       matmul_sample("batch_transposed", {.transpose_a = true, .transpose_b = true}, {2, 2, 4, 3},
                     {2, 2, 5, 4}),
       matmul_sample("single_b", {}, {2, 3, 2, 4}, {4, 5}),
       matmul_sample("single_b_transposed", {.transpose_a = true, .transpose_b = true}, {3, 4, 2}, {5, 4}),
       matmul_sample("single_a", {}, {3, 4}, {2, 4, 5}),
       matmul_sample("single_a_transposed", {.transpose_a = true}, {4, 3}, {2, 4, 5}),
       matmul_sample("sum_batch", {.sum_batch = true}, {3, 2, 4}, {3, 4, 5}),
       matmul_sample("sum_batch_transposed", {.transpose_a = true, .sum_batch = true}, {2, 3, 4, 2},
                     {2, 3, 4, 5}),
       matmul_sample("sum_batch_b_transposed", {.transpose_b = true, .sum_batch = true}, {3, 2, 4},
                     {3, 5, 4}),
       matmul_sample("row_and_column", {}, {1, 6}, {6, 1})});
  std::vector<Sample> linear{linear_sample("matrix", {3, 4}, {5, 4}, true),
                             linear_sample("without_bias", {3, 4}, {5, 4}, false),
                             linear_sample("leading_dimensions", {2, 3, 4}, {5, 4}, true),
                             linear_sample("single_output", {4, 3}, {1, 3}, true)};
  linear.push_back(linear_sample("bias_left_out", {3, 4}, {2, 4}, true));
  linear.back().contract = [](DType) { return std::make_shared<Linear>(false); };
  linear.back().inputs[2].differentiable = false;
  registry.add("linear", std::move(linear));
}

}  // namespace purine::ops
