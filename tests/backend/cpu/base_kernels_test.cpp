// Kernels of the base operators beyond what the sweep over the registry reaches.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "purine/ops/bias.h"
#include "purine/ops/binary.h"
#include "purine/ops/cast.h"
#include "purine/ops/check_finite.h"
#include "purine/ops/clip.h"
#include "purine/ops/concat.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reorder.h"
#include "purine/ops/reshape.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using test::Array;
using test::error_text;
using test::run_operator;

Array counting(Shape shape, DType dtype = DType::f32) {
  Array array({shape, dtype});
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, static_cast<double>(i % 251));
  return array;
}

TEST(BaseKernelsTest, ReorderConvertsBothWays) {
  const std::vector<Layout> plain = {Layout::plain};
  const std::vector<Layout> last = {Layout::channels_last};
  for (const Shape& shape :
       {Shape{2, 3, 5, 7}, Shape{1, 1, 4, 4}, Shape{3, 40, 1, 1}, Shape{5, 17, 19, 33}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::u8}) {
      const Array x = counting(shape, dtype);
      // The runner hands over and takes back in the given layouts, so the values must be the same.
      EXPECT_EQ(run_operator(std::make_shared<ops::Reorder>(Layout::channels_last), {x},
                             {.input_layouts = plain, .output_layouts = last})[0],
                x);
      EXPECT_EQ(run_operator(std::make_shared<ops::Reorder>(Layout::plain), {x},
                             {.input_layouts = last, .output_layouts = plain})[0],
                x);
      EXPECT_EQ(run_operator(std::make_shared<ops::Reorder>(Layout::channels_last), {x},
                             {.input_layouts = last, .output_layouts = last})[0],
                x);
    }
  }
}

TEST(BaseKernelsTest, SumsAreAccurate) {
  // Ten million times 0.1: in f32 alone the sum would be off by percents.
  Array x({{10000000}, DType::f32});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, 0.1);
  const double exact = 1e7 * static_cast<double>(0.1F);
  const ops::Reduction all{{0}, false};
  EXPECT_EQ(run_operator(std::make_shared<ops::Sum>(all), {x})[0].at(0),
            static_cast<double>(static_cast<float>(exact)));
  EXPECT_FLOAT_EQ(static_cast<float>(run_operator(std::make_shared<ops::Mean>(all), {x})[0].at(0)), 0.1F);
}

TEST(BaseKernelsTest, LongColumnsAreSummedAccurately) {
  Array x({{200000, 3}, DType::f32});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, 0.1 * static_cast<double>(i % 3 + 1));
  const Array sums = run_operator(std::make_shared<ops::Sum>(ops::Reduction{{0}, false}), {x})[0];
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_FLOAT_EQ(static_cast<float>(sums.at(k)), static_cast<float>(200000 * x.at(k)));
  }
}

TEST(BaseKernelsTest, EmptyTensorsAreNothing) {
  const Array empty({{0, 4}, DType::f32});
  EXPECT_EQ(run_operator(std::make_shared<ops::Relu>(), {empty})[0], empty);
  EXPECT_EQ(run_operator(std::make_shared<ops::Sum>(ops::Reduction{{0}, false}), {empty})[0],
            Array({{4}, DType::f32}));
  EXPECT_EQ(run_operator(std::make_shared<ops::Concat>(0), {empty, counting({2, 4}), empty})[0],
            counting({2, 4}));
  EXPECT_EQ(run_operator(std::make_shared<ops::Bias>(1), {empty, counting({4})})[0], empty);
  EXPECT_EQ(run_operator(std::make_shared<ops::Transpose>(std::vector<int>{1, 0}), {empty})[0].elements(), 0);
}

TEST(BaseKernelsTest, NanIsNotLost) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array x({{3}, DType::f32}, {nan, -1, 2});
  EXPECT_TRUE(std::isnan(run_operator(std::make_shared<ops::Relu>(), {x})[0].at(0)));
  const Array clipped = run_operator(std::make_shared<ops::Clip>(-0.5, 0.5), {x})[0];
  EXPECT_TRUE(std::isnan(clipped.at(0)));
  EXPECT_EQ(clipped.at(1), -0.5);
  EXPECT_EQ(clipped.at(2), 0.5);
}

TEST(BaseKernelsTest, CastsSaturate) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Array x({{8}, DType::f64}, {-1.5, 2.9, 300, -3e9, 3e9, 1e300, -infinity, std::nan("")});
  const auto cast = [&](DType dtype) {
    return run_operator(std::make_shared<ops::Cast>(dtype), {x})[0].values();
  };
  EXPECT_EQ(cast(DType::u8), (std::vector<double>{0, 2, 255, 0, 255, 255, 0, 0}));
  EXPECT_EQ(cast(DType::i32),
            (std::vector<double>{-1, 2, 300, -2147483648.0, 2147483647.0, 2147483647.0, -2147483648.0, 0}));
  EXPECT_EQ(cast(DType::i64)[5], 0x1p63);
  const Array large({{3}, DType::i64}, {-5, 5e9, 200});
  EXPECT_EQ(run_operator(std::make_shared<ops::Cast>(DType::i32), {large})[0].values(),
            (std::vector<double>{-5, 2147483647.0, 200}));
  EXPECT_EQ(run_operator(std::make_shared<ops::Cast>(DType::u8), {large})[0].values(),
            (std::vector<double>{0, 255, 200}));
}

TEST(BaseKernelsTest, CheckFiniteNamesTheFirstElement) {
  const auto text = [](const Array& x, const test::RunOptions& options = {}) {
    return error_text(
        [&] { run_operator(std::make_shared<ops::CheckFinite>("gradient of conv1/weight"), {x}, options); });
  };
  Array x({{2, 3, 4, 5}, DType::f32});
  x.set(((1 * 3 + 2) * 4 + 0) * 5 + 3, std::numeric_limits<double>::infinity());
  x.set(((1 * 3 + 2) * 4 + 1) * 5 + 0, std::nan(""));
  const std::string expected =
      "[check_finite] gradient of conv1/weight is infinity at [1, 2, 0, 3] of f32[2, 3, 4, 5]";
  EXPECT_EQ(text(x), expected);
  EXPECT_EQ(text(x, {.layout = Layout::channels_last, .in_place = true}), expected);
  // The sign of a NaN is no news; that of infinity is.
  for (const double nan : {std::nan(""), -std::nan("")}) {
    EXPECT_EQ(text(Array::scalar(nan)), "[check_finite] gradient of conv1/weight is NaN");
  }
  EXPECT_EQ(text(Array::scalar(-std::numeric_limits<double>::infinity())),
            "[check_finite] gradient of conv1/weight is -infinity");
  // Every part tells the first of all.
  Array large({{1000000}, DType::f32});
  large.set(20, std::nan(""));
  large.set(999999, std::nan(""));
  for (const test::PartOrder order : {test::PartOrder::ascending, test::PartOrder::descending}) {
    EXPECT_EQ(text(large, {.part_order = order}),
              "[check_finite] gradient of conv1/weight is NaN at [20] of f32[1000000]");
  }
}

TEST(BaseKernelsTest, GlobalNormIsTheRootOfAllSquares) {
  Graph graph;
  const Tensor a = graph.input("a", {{2, 2}, DType::f32});
  const Tensor b = graph.input("b", {{3}, DType::f32});
  const Tensor norm = ops::global_norm({a, b});
  EXPECT_EQ(norm.info(), (TensorInfo{{}, DType::f32}));
  test::Evaluator evaluator(graph);
  evaluator.set(a, Array(a.info(), {1, 2, 3, 4}));
  evaluator.set(b, Array(b.info(), {5, 6, 3}));
  EXPECT_EQ(evaluator.compute(norm).at(0), 10);
  // Squares that overflow f32.
  evaluator.set(b, Array(b.info(), {3e30, 4e30, 0}));
  EXPECT_FLOAT_EQ(static_cast<float>(evaluator.compute(norm).at(0)), 5e30F);
}

TEST(BaseKernelsTest, BroadcastingSaysWhatDoesNotFit) {
  Graph graph;
  const Tensor a = graph.input("a", {{2, 3}, DType::f32});
  const Tensor b = graph.input("b", {{2}, DType::f32});
  EXPECT_EQ(
      error_text([&] { ops::add(a, b); }),
      "[add] add: shapes [2, 3] and [2] do not broadcast: 3 against 2; hint: extents aligned at the last "
      "dimension must be equal, or one of them 1");
  const Tensor whole = graph.input("whole", {{2, 3}, DType::i64});
  EXPECT_EQ(
      error_text([&] { ops::multiply(a, whole); }),
      "[multiply] multiply: a is f32[2, 3], b is i64[2, 3]; the dtypes must be the same; hint: convert one: "
      "ops::cast(x, dtype)");
  EXPECT_EQ(error_text([&] { ops::divide(whole, whole); }),
            "[divide] divide: a is i64[2, 3], a floating tensor is needed; hint: convert it: ops::cast(x, "
            "DType::f32)");
}

TEST(BaseKernelsTest, IntegersWrap) {
  const Array a({{2}, DType::i32}, {2147483647, -2147483648.0});
  const Array b({{2}, DType::i32}, {1, -1});
  EXPECT_EQ(run_operator(std::make_shared<ops::Add>(), {a, b})[0].values(),
            (std::vector<double>{-2147483648.0, 2147483647}));
}

}  // namespace
}  // namespace purine
