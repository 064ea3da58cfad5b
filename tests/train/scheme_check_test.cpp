#include "purine/train/scheme_check.h"

#include <gtest/gtest.h>

namespace purine::train {
namespace {

TEST(SchemeCheckTest, ToleranceIsAMillionthForEachStepOfSgd) {
  const Job::Optimizer sgd{.name = "sgd", .momentum = 0.9};
  EXPECT_DOUBLE_EQ(scheme_tolerance(sgd, 1, 2), 1e-6);
  EXPECT_DOUBLE_EQ(scheme_tolerance(sgd, 5, 4), 5e-6);
  EXPECT_DOUBLE_EQ(scheme_tolerance(sgd, 1, 8), 2e-6) << "sums over twice as many devices";
}

TEST(SchemeCheckTest, VelocitiesCarryEarlierStepsOn) {
  // Steps 1, 2 and 3 count 1, 1 + 0.5 and 1 + 0.5 + 0.25 times.
  EXPECT_DOUBLE_EQ(scheme_tolerance({.name = "momentum", .momentum = 0.5}, 3, 2), 4.25e-6);
  // Nesterov's look one step ahead: 1.5, 1.75 and 1.875.
  EXPECT_DOUBLE_EQ(scheme_tolerance({.name = "nesterov", .momentum = 0.5}, 3, 2), 5.125e-6);
  EXPECT_DOUBLE_EQ(scheme_tolerance({.name = "momentum", .momentum = 0.5}, 3, 2, true), 4.25e-12);
  const Job::Optimizer adam{.name = "adam", .learning_rate = 0.01, .epsilon = 1e-8};
  EXPECT_DOUBLE_EQ(scheme_tolerance(adam, 2, 2, true), 2 * (1e-12 + 1e-10));
  EXPECT_DOUBLE_EQ(scheme_tolerance({.name = "adamw", .learning_rate = 0.01, .epsilon = 1e-30}, 1, 2, true),
                   1e-12 + 0.01)
      << "no more than a whole step";
}

TEST(SchemeCheckTest, AReplicaThatDiffersFailsWhateverTheDifference) {
  SchemeResult result;
  result.tolerance = 1e-6;
  EXPECT_TRUE(result.passed());
  result.unequal_replica = "@1/lenet/fc1/bias";
  EXPECT_FALSE(result.passed());
  result.unequal_replica.clear();
  result.difference = 2e-6;
  EXPECT_FALSE(result.passed());
}

}  // namespace
}  // namespace purine::train
