#include "purine/nn/initializer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "purine/ops/constant.h"
#include "purine/ops/random.h"
#include "tests/support/error_text.h"

namespace purine::nn {
namespace {

const TensorInfo convolution{{20, 6, 5, 3}, DType::f32};  // fan in 90, fan out 300
const TensorInfo dense{{7, 3}, DType::f64};               // fan in 3, fan out 7

double bound(const Initializer& initializer, const TensorInfo& info) {
  const ContractPtr contract = initializer(info);
  const auto& uniform = dynamic_cast<const ops::RandomUniform&>(*contract);
  EXPECT_EQ(uniform.info(), info);
  EXPECT_DOUBLE_EQ(uniform.low(), -uniform.high());
  return uniform.high();
}

double deviation(const Initializer& initializer, const TensorInfo& info) {
  const ContractPtr contract = initializer(info);
  const auto& normal = dynamic_cast<const ops::RandomNormal&>(*contract);
  EXPECT_EQ(normal.info(), info);
  EXPECT_EQ(normal.mean(), 0);
  return normal.deviation();
}

TEST(InitializerTest, PlainOnesAreWhatTheySay) {
  const ContractPtr value = constant(0.25)(dense);
  EXPECT_EQ(dynamic_cast<const ops::Constant&>(*value).value(), 0.25);
  EXPECT_EQ(dynamic_cast<const ops::Constant&>(*value).info(), dense);
  const ContractPtr random = uniform(-1, 3)(dense);
  EXPECT_EQ(dynamic_cast<const ops::RandomUniform&>(*random).low(), -1);
  EXPECT_EQ(dynamic_cast<const ops::RandomUniform&>(*random).high(), 3);
  const ContractPtr bell = normal(2, 0.5)(dense);
  EXPECT_EQ(dynamic_cast<const ops::RandomNormal&>(*bell).mean(), 2);
  EXPECT_EQ(dynamic_cast<const ops::RandomNormal&>(*bell).deviation(), 0.5);
}

TEST(InitializerTest, FansCountWhatAnElementIsMadeFrom) {
  EXPECT_EQ(fans_of(convolution.shape).in, 90);
  EXPECT_EQ(fans_of(convolution.shape).out, 300);
  EXPECT_EQ(fans_of(dense.shape).in, 3);
  EXPECT_EQ(fans_of(dense.shape).out, 7);
  EXPECT_EQ(test::error_text([] {
              kaiming_normal()({{20}, DType::f32});
            }),
            "[initializer] a tensor [20] has no fans; they need [out, in, …]; hint: initialise it with "
            "nn::constant, nn::uniform or nn::normal");
}

// The values that torch.nn.init gives bounds and deviations for the same shapes.
TEST(InitializerTest, XavierIsGlorots) {
  EXPECT_DOUBLE_EQ(bound(xavier_uniform(), convolution), std::sqrt(6.0 / 390));
  EXPECT_DOUBLE_EQ(bound(xavier_uniform(2), dense), 2 * std::sqrt(6.0 / 10));
  EXPECT_DOUBLE_EQ(deviation(xavier_normal(), convolution), std::sqrt(2.0 / 390));
  EXPECT_DOUBLE_EQ(deviation(xavier_normal(5.0 / 3), dense), 5.0 / 3 * std::sqrt(2.0 / 10));
}

TEST(InitializerTest, KaimingIsHes) {
  EXPECT_DOUBLE_EQ(bound(kaiming_uniform(), convolution), std::sqrt(6.0 / 90));
  EXPECT_DOUBLE_EQ(bound(kaiming_uniform(Fan::out), dense), std::sqrt(6.0 / 7));
  EXPECT_DOUBLE_EQ(deviation(kaiming_normal(), convolution), std::sqrt(2.0 / 90));
  EXPECT_DOUBLE_EQ(deviation(kaiming_normal(Fan::out), convolution), std::sqrt(2.0 / 300));
  EXPECT_DOUBLE_EQ(deviation(kaiming_normal(Fan::in, 0.5), dense), std::sqrt(2.0 / (1.25 * 3)));
  EXPECT_DOUBLE_EQ(deviation(kaiming_normal(Fan::average), dense), std::sqrt(2.0 / 5));
}

TEST(InitializerTest, ScaledHasTheGainAlone) {
  EXPECT_DOUBLE_EQ(bound(scaled_uniform(), convolution), std::sqrt(3.0 / 90));
  EXPECT_DOUBLE_EQ(deviation(scaled_normal({.gain = 3, .fan = Fan::out}), dense), 3 / std::sqrt(7.0));
}

}  // namespace
}  // namespace purine::nn
