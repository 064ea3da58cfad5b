#include "purine/backend/cpu/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "purine/core/random.h"
#include "tests/backend/cpu/vector_targets.h"

namespace purine::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normals(std::size_t count, std::uint64_t stream) {
  const Random random(3, stream, 0);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Distance in units in the last place of the expected value.
double units_apart(float got, double expected) {
  const auto nearest = static_cast<float>(expected);
  if (got == nearest) return 0;
  const double unit = static_cast<double>(std::nextafter(std::abs(nearest), infinity)) - std::abs(nearest);
  return std::abs(static_cast<double>(got) - expected) / unit;
}

TEST(LoopsTest, ArithmeticGivesTheSameBitsInEveryVectorTarget) {
  const std::vector<float> a = normals(1003, 1);
  const std::vector<float> b = normals(1003, 2);
  const std::vector<float> c = normals(1003, 3);
  std::vector<std::vector<float>> first;
  test::with_every_vector_target([&] {
    const auto n = static_cast<std::int64_t>(a.size());
    std::vector<std::vector<float>> results(5, std::vector<float>(a.size()));
    arithmetic_loops<float>().scaled_difference(a.data(), b.data(), 0.3F, results[0].data(), n);
    std::vector<float> second(a.size());
    for (std::size_t i = 0; i < c.size(); ++i) second[i] = c[i] * c[i];
    const UpdateLoops<float>::Tensors tensors = {
        a.data(), b.data(), second.data(), c.data(), results[1].data(), results[2].data(), results[3].data()};
    update_loops<float>().nesterov(tensors, {0.1F, 0.9F, 0.01F}, n);
    results[4] = results[1];
    update_loops<float>().adam(tensors, {0.1F, 0.3F, 0.999F, 0.01F, 0.9F, 0.99F, 0.1F, 0.01F, 1e-8F}, n);
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(same_bits(results[i], first[i])) << i;
  });
}

TEST(LoopsTest, SumsGiveTheSameBitsInEveryVectorTarget) {
  const std::vector<float> a = normals(1003, 1);
  const std::vector<float> b = normals(1003, 2);
  std::vector<double> first;
  test::with_every_vector_target([&] {
    const ReduceLoops<float>& loops = reduce_loops<float>();
    const std::vector<double> sums = {
        loops.sum(a.data(), 1003), loops.sum_of_squares(a.data(), 1003), loops.dot(a.data(), b.data(), 1003),
        loops.squared_distance(a.data(), b.data(), 1003), static_cast<double>(loops.largest(a.data(), 1003))};
    if (first.empty()) first = sums;
    EXPECT_EQ(sums, first);
    double plain = 0;
    for (const float value : a) plain += static_cast<double>(value);
    EXPECT_NEAR(sums[0], plain, 1e-11);
    EXPECT_EQ(static_cast<float>(sums[4]), *std::max_element(a.begin(), a.end()));
  });
}

TEST(LoopsTest, FunctionsAreWithinAFewUnitsInTheLastPlace) {
  test::with_every_vector_target([] {
    constexpr std::int64_t count = 20001;
    std::vector<float> x(count);
    std::vector<float> y(count);
    const auto spread = [&](double low, double high) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (count - 1));
      }
    };
    const auto worst = [&](auto exact) {
      double found = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        found = std::max(found, units_apart(y[i], exact(static_cast<double>(x[i]))));
      }
      return found;
    };
    const MathLoops<float>& loops = math_loops<float>();
    spread(-87, 88.7);
    loops.exp(x.data(), y.data(), count);
    EXPECT_LE(worst([](double v) { return std::exp(v); }), 2);
    spread(-80, 20);
    loops.sigmoid(x.data(), y.data(), count);
    EXPECT_LE(worst([](double v) { return 1 / (1 + std::exp(-v)); }), 4);
    spread(-20, 20);
    loops.tanh(x.data(), y.data(), count);
    EXPECT_LE(worst([](double v) { return std::tanh(v); }), 5);
    spread(1e-6, 50);
    loops.log(x.data(), y.data(), count);
    EXPECT_LE(worst([](double v) { return std::log(v); }), 5);
  });
}

TEST(LoopsTest, FunctionsAreRightAtTheirEnds) {
  test::with_every_vector_target([] {
    const std::vector<float> x = {nan, infinity, -infinity, 0, 89, 1000, -110, -1000, 3e38F, -3e38F};
    const auto count = static_cast<std::int64_t>(x.size());
    std::vector<float> y(x.size());
    math_loops<float>().exp(x.data(), y.data(), count);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()),
              (std::vector<float>{infinity, 0, 1, infinity, infinity, 0, 0, infinity, 0}));
    math_loops<float>().sigmoid(x.data(), y.data(), count);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()), (std::vector<float>{1, 0, 0.5F, 1, 1, 0, 0, 1, 0}));
    math_loops<float>().tanh(x.data(), y.data(), count);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()),
              (std::vector<float>{1, -1, 0, 1, 1, -1, -1, 1, -1}));
    math_loops<float>().log(x.data(), y.data(), count);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]) && std::isnan(y[6]) && std::isnan(y[9]));
    EXPECT_EQ(y[1], infinity);
    EXPECT_EQ(y[3], -infinity);
    EXPECT_LE(units_apart(y[8], std::log(static_cast<double>(3e38F))), 5);
    const std::vector<float> tiny = {1e-42F, 1e-38F};
    math_loops<float>().log(tiny.data(), y.data(), 2);
    EXPECT_LE(units_apart(y[0], std::log(static_cast<double>(tiny[0]))), 5);
    EXPECT_LE(units_apart(y[1], std::log(static_cast<double>(tiny[1]))), 5);
  });
}

TEST(LoopsTest, AValueDoesNotDependOnItsPlace) {
  test::with_every_vector_target([] {
    const std::vector<float> x = normals(67, 5);
    std::vector<float> whole(x.size());
    std::vector<float> pieces(x.size());
    for (const auto loop : {math_loops<float>().exp, math_loops<float>().sigmoid, math_loops<float>().tanh}) {
      loop(x.data(), whole.data(), 67);
      for (std::int64_t i = 0; i < 67; i += 3)
        loop(x.data() + i, pieces.data() + i, std::min<std::int64_t>(3, 67 - i));
      EXPECT_TRUE(same_bits(whole, pieces));
    }
  });
}

TEST(LoopsTest, FiniteFindsWhatIsNot) {
  test::with_every_vector_target([] {
    std::vector<float> x = normals(131, 7);
    EXPECT_TRUE(arithmetic_loops<float>().finite(x.data(), 131));
    for (const float bad : {nan, -nan, infinity, -infinity}) {
      for (const std::size_t place : {std::size_t{0}, std::size_t{63}, std::size_t{130}}) {
        const float before = std::exchange(x[place], bad);
        EXPECT_FALSE(arithmetic_loops<float>().finite(x.data(), 131));
        x[place] = before;
      }
    }
    x[5] = std::numeric_limits<float>::max();
    x[6] = std::numeric_limits<float>::denorm_min();
    EXPECT_TRUE(arithmetic_loops<float>().finite(x.data(), 131));
  });
}

}  // namespace
}  // namespace purine::cpu
