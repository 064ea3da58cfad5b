#include "purine/ops/matmul.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/inference.h"
#include "tests/support/run_operator.h"

namespace purine::ops {
namespace {

using test::Array;
using test::error_text;
using test::f32;
using test::inference_error;

std::string inferred(const Contract& contract, std::vector<TensorInfo> inputs) {
  return contract.infer(inputs)[0].text();
}

TEST(MatmulTest, MultipliesInEveryOrientation) {
  const Array a(f32({2, 3}), {1, 2, 3, 4, 5, 6});
  const Array a_transposed(f32({3, 2}), {1, 4, 2, 5, 3, 6});
  const Array b(f32({3, 2}), {1, 10, 2, 20, 3, 30});
  const Array b_transposed(f32({2, 3}), {1, 2, 3, 10, 20, 30});
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const auto contract = std::make_shared<Matmul>(MatmulOptions{transpose_a, transpose_b, false});
      const Array y =
          test::run_operator(contract, {transpose_a ? a_transposed : a, transpose_b ? b_transposed : b})[0];
      EXPECT_EQ(y.values(), (std::vector<double>{14, 140, 32, 320})) << transpose_a << transpose_b;
    }
  }
}

TEST(MatmulTest, InfersBatches) {
  EXPECT_EQ(inferred(Matmul({}), {f32({7, 2, 3, 4}), f32({7, 2, 4, 5})}), "f32[7, 2, 3, 5]");
  EXPECT_EQ(inferred(Matmul({}), {f32({7, 2, 3, 4}), f32({4, 5})}), "f32[7, 2, 3, 5]");
  EXPECT_EQ(inferred(Matmul({.transpose_a = true}), {f32({4, 3}), f32({7, 4, 5})}), "f32[7, 3, 5]");
  EXPECT_EQ(inferred(Matmul({.sum_batch = true}), {f32({7, 2, 3, 4}), f32({7, 2, 4, 5})}), "f32[3, 5]");
  EXPECT_EQ(Matmul({.transpose_b = true}).attributes(), "transpose_a=false transpose_b=true sum_batch=false");
}

TEST(MatmulTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      inference_error(Matmul({}), {f32({2, 3}), f32({2, 4})}),
      "[matmul] a is f32[2, 3], b is f32[2, 4]: a's 3 columns do not meet b's 2 rows; hint: transpose_a and "
      "transpose_b exchange the last two dimensions");
  EXPECT_EQ(inference_error(Matmul({.transpose_b = true}), {f32({2, 3}), f32({3, 4})}),
            "[matmul] a is f32[2, 3], b is f32[3, 4] transposed: a's 3 columns do not meet b's 4 rows; hint: "
            "transpose_a and transpose_b exchange the last two dimensions");
  EXPECT_EQ(
      inference_error(Matmul({}), {f32({3}), f32({3, 4})}),
      "[matmul] a is f32[3], b is f32[3, 4]; both need rank 2 or more; hint: a vector is a matrix of one row "
      "or column: ops::reshape");
  EXPECT_EQ(
      inference_error(Matmul({}), {f32({5, 2, 3}), f32({6, 3, 4})}),
      "[matmul] a is f32[5, 2, 3], b is f32[6, 3, 4]: the dimensions before the last two differ; hint: they "
      "must be the same, or one of a and b a single matrix");
  EXPECT_EQ(
      inference_error(Matmul({.sum_batch = true}), {f32({5, 2, 3}), f32({3, 4})}),
      "[matmul] a is f32[5, 2, 3], b is f32[3, 4]: the dimensions before the last two differ; hint: a sum "
      "over the batch needs the same ones");
  EXPECT_EQ(inference_error(Matmul({}), {f32({2, 3}), {{3, 4}, DType::f64}}),
            "[matmul] a is f32[2, 3], b is f64[3, 4]; they must have one dtype");
  EXPECT_EQ(
      inference_error(Matmul({}), {{{2, 3}, DType::i32}, {{3, 4}, DType::i32}}),
      "[matmul] a is i32[2, 3], a floating tensor is needed; hint: convert it: ops::cast(x, DType::f32)");
}

TEST(MatmulTest, CountsTheBatch) {
  const std::vector<TensorInfo> inputs{f32({7, 2, 3, 4}), f32({4, 5})};
  const Matmul contract({});
  EXPECT_EQ(contract.cost(inputs, contract.infer(inputs)).operations, 2.0 * 7 * 2 * 3 * 4 * 5);
}

TEST(MatmulTest, OverNothingIsZero) {
  const auto contract = std::make_shared<Matmul>(MatmulOptions{});
  const Array y = test::run_operator(contract, {Array(f32({2, 0})), Array(f32({0, 3}))})[0];
  EXPECT_EQ(y.values(), std::vector<double>(6, 0));
}

TEST(LinearTest, TransformsTheLastDimension) {
  const auto contract = std::make_shared<Linear>();
  const Array x(f32({2, 1, 2}), {1, 2, 3, 4});
  const Array weight(f32({3, 2}), {1, 0, 0, 1, 1, 1});
  const Array bias(f32({3}), {10, 20, 30});
  const Array y = test::run_operator(contract, {x, weight, bias})[0];
  EXPECT_EQ(y.info().text(), "f32[2, 1, 3]");
  EXPECT_EQ(y.values(), (std::vector<double>{11, 22, 33, 13, 24, 37}));
}

TEST(LinearTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      inference_error(Linear(), {f32({8, 800}), f32({500, 784})}),
      "[linear] weight has 784 input features, x has 800; hint: x is [..., features], weight is [output "
      "features, input features]; ops::flatten makes images vectors");
  EXPECT_EQ(inference_error(Linear(), {f32({800}), f32({500, 800})}),
            "[linear] x is f32[800], rank 2 or more is needed");
  EXPECT_EQ(inference_error(Linear(), {f32({8, 800}), f32({500, 8, 100})}),
            "[linear] weight is f32[500, 8, 100], rank 2 is needed");
  EXPECT_EQ(inference_error(Linear(), {f32({8, 800}), f32({500, 800}), f32({800})}),
            "[linear] bias is f32[800], the weight's 500 output features need [500]");
}

TEST(LinearTest, OnlyTheFirstPieceOverTheInputFeaturesAddsTheBias) {
  const auto contract = std::make_shared<Linear>();
  const std::vector<TensorInfo> inputs{f32({8, 4}), f32({3, 4}), f32({3})};
  const std::vector<SplitRule> rules = contract->split_rules(inputs);
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[2].outputs, (std::vector<int>{SplitRule::partial}));
  EXPECT_EQ(contract->piece(rules[2], {0, 2, 4}, inputs)->attributes(), "");
  EXPECT_EQ(contract->piece(rules[2], {2, 4, 4}, inputs)->attributes(), "adds_bias=false");
  EXPECT_EQ(contract->piece(rules[0], {2, 4, 4}, inputs)->attributes(), "");
}

}  // namespace
}  // namespace purine::ops
