#include "tests/support/run_operator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "purine/ops/relu.h"

namespace purine::test {
namespace {

TEST(RunOperatorTest, RunsRelu) {
  const Array x({{2, 3}, DType::f32}, {-1, 2, -3, 4, 0, 6});
  const std::vector<Array> y = run_operator(std::make_shared<ops::Relu>(), {x});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(y[0], Array({{2, 3}, DType::f32}, {0, 2, 0, 4, 0, 6}));
}

TEST(RunOperatorTest, AnyLayoutAnyOrderAndInPlaceGiveTheSame) {
  Array x({{2, 512, 16, 16}, DType::f64});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::sin(static_cast<double>(i)));
  const ContractPtr relu = std::make_shared<ops::Relu>();
  ASSERT_GT(BoundOperator(relu, {x.info()}).parts(), 1);
  const Array expected = run_operator(relu, {x})[0];
  RunOptions options;
  options.layout = Layout::channels_last;
  options.in_place = true;
  options.part_order = PartOrder::shuffled;
  EXPECT_EQ(run_operator(relu, {x}, options)[0], expected);
}

TEST(RunOperatorTest, LayoutsConvertForthAndBack) {
  Array x({{2, 3, 2, 2}, DType::i32});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i));
  Array last(x.info());
  convert_layout(x.shape(), 4, Layout::channels_last, x.bytes(), last.bytes(), true);
  EXPECT_EQ(last.values(), (std::vector<double>{0,  4,  8,  1,  5,  9,  2,  6,  10, 3,  7,  11,
                                                12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23}));
  Array back(x.info());
  convert_layout(x.shape(), 4, Layout::channels_last, last.bytes(), back.bytes(), false);
  EXPECT_EQ(back, x);
}

TEST(RunOperatorTest, SlicesAndConcatenates) {
  const Array x({{2, 3}, DType::f32}, {0, 1, 2, 3, 4, 5});
  const std::vector<Array> parts = {x.slice(1, 0, 1), x.slice(1, 1, 3)};
  EXPECT_EQ(parts[0], Array({{2, 1}, DType::f32}, {0, 3}));
  EXPECT_EQ(parts[1], Array({{2, 2}, DType::f32}, {1, 2, 4, 5}));
  EXPECT_EQ(Array::concatenate(parts, 1), x);
}

TEST(RunOperatorTest, GuardsShowWritesOutOfBounds) {
  GuardedBuffer buffer(10);
  EXPECT_TRUE(buffer.intact());
  buffer.data()[9] = std::byte{1};
  EXPECT_TRUE(buffer.intact());
  buffer.data()[10] = std::byte{1};
  EXPECT_FALSE(buffer.intact());
}

TEST(RunOperatorTest, ScratchAndOutputsStartAsNotANumber) {
  GuardedBuffer buffer(8);
  double value = 0;
  std::memcpy(&value, buffer.data(), sizeof(value));
  EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace purine::test
