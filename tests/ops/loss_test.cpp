#include "purine/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "purine/gradient/gradient.h"
#include "purine/ops/reduce.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine {
namespace {

using test::Array;
using test::error_text;
using test::run_operator;

const Array logits({{2, 3}, DType::f32}, {2.5, 0, 0, 0, 0, 2.5});

Array labels_of(std::initializer_list<double> labels, DType dtype = DType::i64) {
  return Array({{static_cast<std::int64_t>(labels.size())}, dtype}, labels);
}

TEST(LossTest, CrossEntropyIsTheClosedForm) {
  // log(1 + 2 exp(-2.5)) for both samples.
  for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
    const Array loss =
        run_operator(std::make_shared<ops::SoftmaxCrossEntropy>(), {logits, labels_of({0, 2}, dtype)})[0];
    EXPECT_NEAR(loss.at(0), 0.152008, 5e-7);
    EXPECT_NEAR(loss.at(0), std::log1p(2 * std::exp(-2.5)), 1e-8);
  }
}

TEST(LossTest, CrossEntropyIsStable) {
  const Array large({{2, 3}, DType::f32}, {1e4, -1e4, 0, 3e38, 3e38, -3e38});
  const Array loss =
      run_operator(std::make_shared<ops::SoftmaxCrossEntropy>(), {large, labels_of({0, 1})})[0];
  EXPECT_NEAR(loss.at(0), std::log(2.0) / 2, 1e-7);
  const Array gradient = run_operator(std::make_shared<ops::SoftmaxCrossEntropyGradient>(),
                                      {large, labels_of({0, 1}), Array::scalar(1)})[0];
  EXPECT_EQ(gradient, Array({{2, 3}, DType::f32}, {0, 0, 0, 0.25, -0.25, 0}));
}

TEST(LossTest, NanLogitsGiveANanLoss) {
  Array broken = logits;
  broken.set(4, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(
      run_operator(std::make_shared<ops::SoftmaxCrossEntropy>(), {broken, labels_of({0, 2})})[0].at(0)));
}

TEST(LossTest, LabelsOutOfRangeAreErrorsOnEveryPath) {
  const Array many({{5, 10}, DType::f32});
  for (const double bad : {12.0, 10.0, -1.0}) {
    const Array labels = labels_of({0, 9, 3, bad, 4});
    const std::string text =
        "label " + std::to_string(static_cast<int>(bad)) + " of sample 3 is outside 0..9";
    EXPECT_EQ(error_text([&] {
                run_operator(std::make_shared<ops::SoftmaxCrossEntropy>(), {many, labels});
              }),
              "[softmax_cross_entropy] " + text);
    EXPECT_EQ(error_text([&] {
                run_operator(std::make_shared<ops::SoftmaxCrossEntropyGradient>(),
                             {many, labels, Array::scalar(1)});
              }),
              "[softmax_cross_entropy_gradient] " + text);
    EXPECT_EQ(error_text([&] {
                run_operator(std::make_shared<ops::Accuracy>(1), {many, labels});
              }),
              "[accuracy] " + text);
  }
  const ContractPtr piece = std::make_shared<ops::SoftmaxCrossEntropy>(ops::BatchShare{64, 32});
  EXPECT_EQ(error_text([&] {
              run_operator(piece, {many, labels_of({0, 77, 3, 1, 4})});
            }),
            "[softmax_cross_entropy] label 77 of sample 33 is outside 0..9");
}

TEST(LossTest, AnErrorHasThePathOfItsOperator) {
  Graph graph;
  const Tensor x = graph.input("x", {{1, 10}, DType::f32});
  const Tensor labels = graph.input("labels", {{1}, DType::i64});
  Tensor loss;
  {
    const auto scope = graph.scope("lenet");
    loss = ops::softmax_cross_entropy(x, labels, "loss");
  }
  test::Evaluator evaluator(graph);
  evaluator.set(x, Array(x.info()));
  evaluator.set(labels, labels_of({12}));
  EXPECT_EQ(error_text([&] { evaluator.compute(loss); }),
            "[softmax_cross_entropy] lenet/loss: label 12 of sample 0 is outside 0..9");
}

TEST(LossTest, PiecesOfAMeanDivideByTheWhole) {
  const std::vector<TensorInfo> infos = {{{5, 3}, DType::f32}, {{5}, DType::i64}};
  const SplitRule rule = ops::SoftmaxCrossEntropy().split_rules(infos)[0];
  const ContractPtr whole = std::make_shared<ops::SoftmaxCrossEntropy>();
  EXPECT_EQ(whole->piece(rule, {0, 2, 5}, infos)->attributes(), "divisor=5");
  EXPECT_EQ(whole->piece(rule, {2, 5, 5}, infos)->attributes(), "divisor=5 first_sample=2");
  EXPECT_EQ(whole->piece(rule, {0, 3, 3}, infos)->attributes(), "");
  EXPECT_EQ(whole->piece(rule, {3, 7, 9}, infos)->attributes(), "divisor=9 first_sample=3");
  // The mean of one sample of two, and of the other, add up to that of both.
  const ContractPtr half = std::make_shared<ops::SoftmaxCrossEntropy>(ops::BatchShare{2, 0});
  const double first = run_operator(half, {logits.slice(0, 0, 1), labels_of({1})})[0].at(0);
  const double second = run_operator(half, {logits.slice(0, 1, 2), labels_of({2})})[0].at(0);
  EXPECT_NEAR(run_operator(whole, {logits, labels_of({1, 2})})[0].at(0), first + second, 1e-7);
}

TEST(LossTest, AccuracyCountsTheLabelsAmongTheLargest) {
  const Array scores({{4, 3}, DType::f32}, {3, 2, 1, 1, 2, 3, 5, 5, 5, 0, 1, 0});
  const auto accuracy = [&](int top, std::initializer_list<double> labels) {
    return run_operator(std::make_shared<ops::Accuracy>(top), {scores, labels_of(labels)})[0].at(0);
  };
  EXPECT_EQ(accuracy(1, {0, 2, 0, 1}), 1);
  EXPECT_EQ(accuracy(1, {1, 2, 0, 1}), 0.75);
  EXPECT_EQ(accuracy(2, {1, 1, 1, 0}), 1);
  // Of equal ones the lower class is the larger.
  EXPECT_EQ(accuracy(1, {0, 2, 1, 1}), 0.75);
  EXPECT_EQ(accuracy(2, {0, 2, 2, 2}), 0.5);
  EXPECT_EQ(accuracy(3, {2, 0, 2, 2}), 1);
}

TEST(LossTest, NanIsNeverTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array scores({{2, 2}, DType::f32}, {nan, nan, nan, 0});
  EXPECT_EQ(run_operator(std::make_shared<ops::Accuracy>(2), {scores, labels_of({0, 0})})[0].at(0), 0);
}

TEST(LossTest, RefusesWhatDoesNotFit) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 10}, DType::f32});
  const Tensor image = graph.input("image", {{4, 10, 1, 1}, DType::f32});
  const Tensor floating = graph.input("floating", {{4}, DType::f32});
  const Tensor few = graph.input("few", {{3}, DType::i64});
  const Tensor labels = graph.input("labels", {{4}, DType::i64});
  EXPECT_EQ(error_text([&] { ops::softmax_cross_entropy(image, labels); }),
            "[softmax_cross_entropy] softmax_cross_entropy: logits are f32[4, 10, 1, 1], [samples, classes] "
            "is needed; "
            "hint: ops::flatten(x)");
  EXPECT_EQ(error_text([&] { ops::softmax_cross_entropy(x, floating); }),
            "[softmax_cross_entropy] softmax_cross_entropy: labels are f32[4], integers are needed: u8, i32 "
            "or i64");
  EXPECT_EQ(error_text([&] { ops::accuracy(x, few); }),
            "[accuracy] accuracy: labels are i64[3], logits f32[4, 10]; one label a sample is needed");
  EXPECT_EQ(error_text([&] { ops::accuracy(x, labels, 0); }), "[accuracy] top is 0, it must be at least 1");
  EXPECT_EQ(
      error_text([&] { ops::mean_squared_error(x, floating); }),
      "[mean_squared_error] mean_squared_error: prediction is f32[4, 10], target is f32[4]; they must be the "
      "same");
}

}  // namespace
}  // namespace purine
