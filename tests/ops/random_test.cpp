// Random tensors, dropout, and that pieces of them have the whole's values.
#include "purine/ops/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "purine/core/random.h"
#include "purine/ops/dropout.h"
#include "tests/support/error_text.h"
#include "tests/support/run_operator.h"

namespace purine {
namespace {

using test::Array;
using test::error_text;
using test::run_operator;

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments_of(const Array& array) {
  Moments moments;
  const auto n = static_cast<double>(array.elements());
  for (std::int64_t i = 0; i < array.elements(); ++i) moments.mean += array.at(i) / n;
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    moments.variance += (array.at(i) - moments.mean) * (array.at(i) - moments.mean) / n;
  }
  return moments;
}

TEST(RandomTest, ValuesAreThoseOfTheStream) {
  const ContractPtr uniform = ops::make_random_uniform({{3, 7}, DType::f32}, -1, 3);
  const ContractPtr normal = ops::make_random_normal({{3, 7}, DType::f64}, 5, 2);
  const test::RunOptions options{.seed = 11, .stream = 13, .iteration = 17};
  const Random random(11, 13, 17);
  const Array uniforms = run_operator(uniform, {}, options)[0];
  const Array normals = run_operator(normal, {}, options)[0];
  for (std::int64_t i = 0; i < 21; ++i) {
    const auto element = static_cast<std::uint64_t>(i);
    EXPECT_FLOAT_EQ(static_cast<float>(uniforms.at(i)), -1 + 4 * random.uniform(element));
    EXPECT_DOUBLE_EQ(normals.at(i), 5 + 2 * static_cast<double>(random.normal(element)));
  }
}

TEST(RandomTest, HasTheMomentsOfItsDistribution) {
  // Standard errors with 2^18 values: of the mean deviation / 512, of the variance about twice that; 5 of
  // them.
  const TensorInfo info{{512, 512}, DType::f32};
  const Moments uniform = moments_of(run_operator(ops::make_random_uniform(info, -1, 3), {})[0]);
  EXPECT_NEAR(uniform.mean, 1, 5 * 1.1547 / 512);
  EXPECT_NEAR(uniform.variance, 16.0 / 12, 5 * 1.2 / 512);
  const Moments normal = moments_of(run_operator(ops::make_random_normal(info, 0.5, 2), {})[0]);
  EXPECT_NEAR(normal.mean, 0.5, 5 * 2.0 / 512);
  EXPECT_NEAR(normal.variance, 4, 5 * 4 * 1.4143 / 512);
}

TEST(RandomTest, EachIterationAndStreamIsAnother) {
  const ContractPtr contract = ops::make_random_uniform({{64}, DType::f32}, 0, 1);
  const Array first = run_operator(contract, {})[0];
  EXPECT_EQ(run_operator(contract, {})[0], first);
  EXPECT_FALSE(run_operator(contract, {}, {.seed = 2})[0] == first);
  EXPECT_FALSE(run_operator(contract, {}, {.stream = 3})[0] == first);
  EXPECT_FALSE(run_operator(contract, {}, {.iteration = 1})[0] == first);
}

/// Cuts a contract twice, by two of its rules, and compares the values with those of the whole.
void expect_excerpt(const ContractPtr& contract, std::span<const Array> inputs) {
  const std::vector<TensorInfo> infos = test::infos_of(inputs);
  const Array whole = run_operator(contract, inputs)[0];
  for (const int outer : {0, 1, 2, 3}) {
    for (const int inner : {0, 1, 2, 3}) {
      const SplitRule rule = contract->split_rules(infos)[static_cast<std::size_t>(outer)];
      const ContractPtr part = contract->piece(rule, {1, 3, rule.units}, infos);
      std::vector<Array> part_inputs;
      for (const Array& input : inputs) part_inputs.push_back(input.slice(outer, 1, 3));
      const std::vector<TensorInfo> part_infos = test::infos_of(part_inputs);
      const SplitRule part_rule = part->split_rules(part_infos)[static_cast<std::size_t>(inner)];
      const ContractPtr cut = part->piece(part_rule, {1, 2, part_rule.units}, part_infos);
      std::vector<Array> cut_inputs;
      for (const Array& input : part_inputs) cut_inputs.push_back(input.slice(inner, 1, 2));
      EXPECT_EQ(run_operator(cut, cut_inputs)[0], whole.slice(outer, 1, 3).slice(inner, 1, 2))
          << "dimension " << outer << ", then " << inner;
    }
  }
}

TEST(RandomTest, PiecesOfPiecesHaveTheWholesValues) {
  const TensorInfo info{{4, 3, 5, 6}, DType::f32};
  expect_excerpt(ops::make_random_uniform(info, 0, 1), {});
  expect_excerpt(ops::make_random_normal(info, 0, 1), {});
  Array ones(info);
  for (std::int64_t i = 0; i < ones.elements(); ++i) ones.set(i, 1);
  expect_excerpt(std::make_shared<ops::Dropout>(0.5), std::vector<Array>{ones});
}

TEST(RandomTest, RefusesWhatIsNoDistribution) {
  const TensorInfo info{{3}, DType::f32};
  EXPECT_EQ(error_text([&] { ops::make_random_uniform(info, 1, 0); }),
            "[random_uniform] [1, 0) is no range of finite values");
  EXPECT_EQ(error_text([&] { ops::make_random_normal(info, 0, -1); }),
            "[random_normal] mean 0 and deviation -1 are no normal distribution");
  Graph graph;
  EXPECT_EQ(error_text([&] {
              ops::random_uniform(graph, {{3}, DType::i32}, 0, 1);
            }),
            "[random_uniform] random_uniform: the tensor is i32[3], a floating dtype is needed");
}

TEST(DropoutTest, ScalesWhatItKeepsAndSaysSoInTheMask) {
  Array x({{256, 256}, DType::f32});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i % 7 + 1));
  const std::vector<Array> outputs = run_operator(std::make_shared<ops::Dropout>(0.25), {x});
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const bool keeps = outputs[1].at(i) == 1;
    kept += keeps ? 1 : 0;
    ASSERT_FLOAT_EQ(static_cast<float>(outputs[0].at(i)), keeps ? static_cast<float>(x.at(i)) / 0.75F : 0.0F);
  }
  // 65536 draws, whose deviation is sqrt(65536 * 0.25 * 0.75) = 111.
  EXPECT_NEAR(static_cast<double>(kept), 65536 * 0.75, 5 * 111);
}

TEST(DropoutTest, DropsTheSameElementsInEveryLayout) {
  Array x({{2, 5, 3, 7}, DType::f32});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i));
  const ContractPtr contract = std::make_shared<ops::Dropout>(0.5);
  const std::vector<Array> plain = run_operator(contract, {x});
  const std::vector<Array> last = run_operator(contract, {x}, {.layout = Layout::channels_last});
  EXPECT_EQ(plain[0], last[0]);
  EXPECT_EQ(plain[1], last[1]);
}

TEST(DropoutTest, RefusesWhatIsNoProbability) {
  EXPECT_EQ(error_text([] { ops::Dropout(1); }),
            "[dropout] probability is 1, it must be at least 0 and below 1");
  EXPECT_EQ(error_text([] { ops::Dropout(-0.5); }),
            "[dropout] probability is -0.5, it must be at least 0 and below 1");
}

}  // namespace
}  // namespace purine
