#include "purine/ops/concat.h"

#include <gtest/gtest.h>

#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/ops/binary.h"
#include "purine/ops/reduce.h"
#include "purine/ops/unary.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine::ops {
namespace {

using test::Array;
using test::error_text;

const Array two_rows({{2, 5}, DType::f64}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14});

std::vector<Array> split_array(const Array& array, int axis, std::vector<std::int64_t> sizes) {
  Graph graph;
  const Tensor x = graph.input("x", array.info());
  const std::vector<Tensor> parts = split(x, axis, std::move(sizes));
  verify(graph);
  test::Evaluator evaluator(graph);
  evaluator.set(x, array);
  return evaluator.compute(parts);
}

TEST(SplitTest, GivesTheElementsOneAfterTheOther) {
  const std::vector<Array> columns = split_array(two_rows, 1, {2, 3});
  ASSERT_EQ(columns.size(), 2);
  EXPECT_EQ(columns[0], Array({{2, 2}, DType::f64}, {0, 1, 10, 11}));
  EXPECT_EQ(columns[1], Array({{2, 3}, DType::f64}, {2, 3, 4, 12, 13, 14}));
  const Array numbers({{5}, DType::i64}, {5, 6, 7, 8, 9});
  const std::vector<Array> parts = split_array(numbers, 0, {2, 3});
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[0], Array({{2}, DType::i64}, {5, 6}));
  EXPECT_EQ(parts[1], Array({{3}, DType::i64}, {7, 8, 9}));
}

TEST(SplitTest, CountsANegativeAxisFromTheLast) {
  EXPECT_EQ(split_array(two_rows, -1, {2, 3}), split_array(two_rows, 1, {2, 3}));
  const std::vector<Array> rows = split_array(two_rows, -2, {1, 1});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0], Array({{1, 5}, DType::f64}, {0, 1, 2, 3, 4}));
  EXPECT_EQ(rows[1], Array({{1, 5}, DType::f64}, {10, 11, 12, 13, 14}));
}

TEST(SplitTest, OfOnePartIsTheWhole) {
  const std::vector<Array> parts = split_array(two_rows, 1, {5});
  ASSERT_EQ(parts.size(), 1);
  EXPECT_EQ(parts[0], two_rows);
}

TEST(SplitTest, PutTogetherIsTheWhole) {
  Graph graph;
  const Tensor x = graph.input("x", two_rows.info());
  const Tensor again = concat(split(x, 1, {1, 0, 3, 1}), -1);
  test::Evaluator evaluator(graph);
  evaluator.set(x, two_rows);
  EXPECT_EQ(evaluator.compute(again), two_rows);
}

TEST(SplitTest, SaysWhatIsWrong) {
  Graph graph;
  const Tensor x = graph.input("x", {{2, 5}, DType::f32});
  EXPECT_EQ(error_text([&] {
              split(x, 1, {2, 2});
            }),
            "[split] x: the sizes add up to 4, dimension 1 of f32[2, 5] has 5");
  EXPECT_EQ(error_text([&] {
              split(x, -2, {2, 3});
            }),
            "[split] x: the sizes add up to 5, dimension 0 of f32[2, 5] has 2");
  EXPECT_EQ(error_text([&] { split(x, 1, {}); }),
            "[split] x: the sizes add up to 0, dimension 1 of f32[2, 5] has 5");
  EXPECT_EQ(error_text([&] {
              split(x, 1, {7, -2});
            }),
            "[slice] split: [0, 7) is not within dimension 1 of f32[2, 5]");
  EXPECT_EQ(error_text([&] { split(x, 2, {5}); }), "[split] axis 2 of a tensor of rank 2 does not exist");
}

TEST(SplitTest, GradientMatchesFiniteDifferences) {
  Graph graph;
  const Tensor x = graph.input("x", two_rows.info());
  const std::vector<Tensor> parts = split(x, -1, {2, 3});
  // Each part counts in its own way, so that a gradient that lands in the other part, or elsewhere in its
  // own, shows: the sum of squares of the first, and of cubes of the second.
  const Tensor loss = add(sum(square(parts[0])), sum(multiply(square(parts[1]), parts[1])));
  const Tensor gradient = gradients(loss, {x})[0];
  verify(graph);
  test::Evaluator evaluator(graph);
  evaluator.set(x, two_rows);
  const Array found = evaluator.compute(gradient);
  ASSERT_EQ(found.info().text(), two_rows.info().text());
  for (std::int64_t k = 0; k < two_rows.elements(); ++k) {
    const auto loss_at = [&](double distance) {
      Array moved = two_rows;
      moved.set(k, moved.at(k) + distance);
      evaluator.set(x, moved);
      return evaluator.compute(loss).at(0);
    };
    // Exact for cubes but for rounding: losses of 1e4 with 1e-16 each, over a distance of 0.5.
    const double expected = (8 * (loss_at(0.5) - loss_at(-0.5)) - (loss_at(1) - loss_at(-1))) / 6;
    EXPECT_NEAR(found.at(k), expected, 1e-10) << "element " << k;
  }
}

}  // namespace
}  // namespace purine::ops
