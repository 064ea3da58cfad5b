#include <gtest/gtest.h>

#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/ops/binary.h"
#include "purine/ops/reduce.h"
#include "purine/ops/unary.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using test::Array;

const TensorInfo three_doubles{{3}, DType::f64};

TEST(GradientValuesTest, OfProductsAndSumsIsTheClosedForm) {
  Graph graph;
  const Tensor x = graph.input("x", three_doubles);
  const Tensor y = graph.input("y", three_doubles);
  // loss = sum(x * y + x * x), so that d/dx = y + 2 x and d/dy = x.
  const Tensor loss = ops::sum(ops::add(ops::multiply(x, y), ops::square(x)));
  const std::vector<Tensor> found = gradients(loss, {x, y});
  verify(graph);
  test::Evaluator values(graph);
  values.set(x, Array(three_doubles, {1, 2, 3}));
  values.set(y, Array(three_doubles, {-1, 5, 0.5}));
  const std::vector<Array> results = values.compute(found);
  EXPECT_EQ(results[0], Array(three_doubles, {1, 9, 6.5}));
  EXPECT_EQ(results[1], Array(three_doubles, {1, 2, 3}));
}

TEST(GradientValuesTest, ATensorReadTwiceBySameOperatorCountsTwice) {
  Graph graph;
  const Tensor x = graph.input("x", three_doubles);
  const Tensor loss = ops::sum(ops::multiply(x, x));
  const Tensor gradient = gradients(loss, {x})[0];
  test::Evaluator values(graph);
  values.set(x, Array(three_doubles, {1, -2, 3}));
  EXPECT_EQ(values.compute(gradient), Array(three_doubles, {2, -4, 6}));
}

TEST(GradientValuesTest, OfGradientsAreHigherDerivatives) {
  Graph graph;
  const Tensor x = graph.input("x", three_doubles);
  // x^4: derivatives 4 x^3, 12 x^2, 24 x, 24.
  Tensor value = ops::square(ops::square(x));
  std::vector<Tensor> derivatives;
  for (int order = 0; order < 4; ++order) {
    value = gradients(ops::sum(value), {x})[0];
    derivatives.push_back(value);
  }
  verify(graph);
  test::Evaluator values(graph);
  values.set(x, Array(three_doubles, {1, -2, 0.5}));
  const std::vector<Array> results = values.compute(derivatives);
  EXPECT_EQ(results[0], Array(three_doubles, {4, -32, 0.5}));
  EXPECT_EQ(results[1], Array(three_doubles, {12, 48, 3}));
  EXPECT_EQ(results[2], Array(three_doubles, {24, -48, 12}));
  EXPECT_EQ(results[3], Array(three_doubles, {24, 24, 24}));
}

TEST(GradientValuesTest, OfTheLossByItselfIsOne) {
  Graph graph;
  const Tensor x = graph.input("x", {{}, DType::f64});
  const Tensor gradient = gradients(x, {x})[0];
  EXPECT_EQ(test::Evaluator(graph).compute(gradient), Array::scalar(1, DType::f64));
}

TEST(GradientValuesTest, ByResultsOfOperatorsToo) {
  Graph graph;
  const Tensor x = graph.input("x", three_doubles);
  const Tensor middle = ops::scale(x, 3);
  const Tensor loss = ops::sum(ops::square(middle));
  const std::vector<Tensor> found = gradients(loss, {middle, x});
  test::Evaluator values(graph);
  values.set(x, Array(three_doubles, {1, 2, -1}));
  const std::vector<Array> results = values.compute(found);
  EXPECT_EQ(results[0], Array(three_doubles, {6, 12, -6}));
  EXPECT_EQ(results[1], Array(three_doubles, {18, 36, -18}));
}

}  // namespace
}  // namespace purine
