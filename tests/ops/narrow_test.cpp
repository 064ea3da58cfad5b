#include "purine/ops/narrow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "purine/core/random.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine::ops {
namespace {

using test::Array;

/// What is left of numbers after the way there and back.
std::vector<double> there_and_back(const std::vector<double>& numbers, NarrowFormat format) {
  Graph graph;
  const TensorInfo info{{static_cast<std::int64_t>(numbers.size())}, DType::f32};
  const Tensor x = graph.input("x", info);
  const Tensor y = widen(narrow(x, format), format, DType::f32);
  test::Evaluator evaluator(graph);
  evaluator.set(x, Array(info, numbers));
  const Array result = evaluator.compute(y);
  std::vector<double> values;
  for (std::int64_t i = 0; i < result.elements(); ++i) values.push_back(result.at(i));
  return values;
}

/// The nearest number with so many bits of fraction whose exponent is at least `least`, to even on a tie: by
/// scaling until the last bit is 1, in double precision, where that is exact.
double nearest(double value, int fraction, int least, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, fraction - exponent)), exponent - fraction);
  if (std::abs(rounded) > largest) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

TEST(NarrowTest, RoundsToTheNearest) {
  const Random random(3, 1, 0);
  std::vector<double> numbers = {
      0,         -0.0,      1,         -1,        65504,       65519.99,
      65520,     65536,     1e30,      3.4e38,    -3.4e38,     0x1p-14,
      0x1p-24,   0x1p-25,   0x1.8p-25, 0x1.8p-24, 0x1.ffep-15, 0x1.fffp-15,
      0x1.002p0, 0x1.006p0, 0x1.01p0,  0x1.03p0,  1e-40,       std::numeric_limits<double>::infinity()};
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double magnitude =
        std::ldexp(1 + random.uniform(2 * i), static_cast<int>(random.below(2 * i + 1, 60)) - 35);
    numbers.push_back(static_cast<float>(i % 2 == 0 ? magnitude : -magnitude));
  }
  for (double& number : numbers) number = static_cast<float>(number);
  const std::vector<double> f16 = there_and_back(numbers, NarrowFormat::f16);
  const std::vector<double> bf16 = there_and_back(numbers, NarrowFormat::bf16);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(f16[i], nearest(numbers[i], 10, -14, 65504)) << numbers[i];
    EXPECT_EQ(bf16[i], nearest(numbers[i], 7, -126, 0x1.fep127)) << numbers[i];
  }
}

TEST(NarrowTest, KeepsEveryNumberThatItHas) {
  // All finite f16, by their bytes.
  Graph graph;
  const TensorInfo info{{2 * 0x7c00}, DType::u8};
  const Tensor bytes = graph.input("bytes", info);
  const Tensor again = narrow(widen(bytes, NarrowFormat::f16, DType::f64), NarrowFormat::f16);
  test::Evaluator evaluator(graph);
  Array values(info);
  for (std::int64_t i = 0; i < 0x7c00; ++i) {
    values.set(2 * i, static_cast<double>(i & 0xff));
    values.set(2 * i + 1, static_cast<double>(i >> 8));
  }
  evaluator.set(bytes, values);
  EXPECT_EQ(evaluator.compute(again), values);
}

TEST(NarrowTest, KeepsNotANumber) {
  for (const NarrowFormat format : {NarrowFormat::f16, NarrowFormat::bf16}) {
    EXPECT_TRUE(std::isnan(there_and_back({std::numeric_limits<double>::quiet_NaN()}, format)[0]));
  }
}

TEST(NarrowTest, SaysWhatIsWrong) {
  Graph graph;
  const Tensor matrix = graph.input("matrix", {{2, 3}, DType::f32});
  const Tensor bytes = graph.input("bytes", {{3}, DType::u8});
  EXPECT_EQ(test::error_text([&] { narrow(matrix, NarrowFormat::f16); }),
            "[narrow] narrow: x is f32[2, 3], a tensor of rank 1 is needed; hint: ops::reshape(x, {-1})");
  EXPECT_EQ(test::error_text([&] { widen(bytes, NarrowFormat::f16, DType::f32); }),
            "[widen] widen: bytes are u8[3], an even number of u8 is needed");
}

}  // namespace
}  // namespace purine::ops
