#include "purine/train/step_error.h"

#include <gtest/gtest.h>

namespace purine::train {
namespace {

TEST(StepErrorTest, StepsCountFromOne) {
  const Error cause = Error("image", "ends early", "take it away").at("set/a.jpg").on("0/cpu:0");
  EXPECT_STREQ(step_error(IterationError(cause, 4)).what(),
               "[image] set/a.jpg on 0/cpu:0: ends early (step 5); hint: take it away");
}

TEST(StepErrorTest, ValuesThatAreNotFiniteAreAMatterOfTraining) {
  const Error cause = Error("check_finite", "the gradient of fc1/weight is NaN at [0, 3] of f32[8, 4]")
                          .at("optimizer/check")
                          .on("0/cpu:0");
  EXPECT_STREQ(step_error(IterationError(cause, 0)).what(),
               "[training] step 1: the gradient of fc1/weight is NaN at [0, 3] of f32[8, 4], so the step was "
               "not taken; "
               "hint: training has diverged: try a lower optimizer.learning_rate, a longer "
               "optimizer.warmup_epochs, or "
               "gradient clipping (optimizer.clip_norm)");
}

TEST(StepErrorTest, WhatEndedTheRunElsewhereSaysTheStepToo) {
  const RemoteError waited(1, "at b, silent; 0/cpu:0 waited for x (iteration 4)", "look there");
  EXPECT_STREQ(step_error(waited, 3).what(),
               "[rank 1] at b, silent; 0/cpu:0 waited for x (step 5); hint: look there");
  const RemoteError between(2, "at c, gone", {}, RemoteError::Rank::is_gone);
  EXPECT_STREQ(step_error(between, 3).what(), "[rank 2] at c, gone (after step 3)");
  EXPECT_EQ(step_error(between, 3).rank(), 2);
  EXPECT_EQ(step_error(between, 3).state(), RemoteError::Rank::is_gone);
  const RemoteError said(1, "at b, [relu] y: fails (step 4)");
  EXPECT_STREQ(step_error(said, 3).what(), said.what());
}

}  // namespace
}  // namespace purine::train
