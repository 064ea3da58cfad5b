#include "purine/optim/optimizers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "purine/ops/constant.h"
#include "purine/ops/copy.h"
#include "purine/ops/loss.h"
#include "purine/ops/matmul.h"
#include "tests/support/error_text.h"
#include "tests/support/evaluate.h"

namespace purine::optim {
namespace {

using test::Array;
using test::error_text;
using test::Evaluator;

/// The linear regression of golden/make_optimizers.py: the same numbers, by the same formula.
class Regression {
 public:
  explicit Regression(DType dtype = DType::f64) : dtype_(dtype) {
    x_ = graph.input("x", {{6, 3}, dtype});
    target_ = graph.input("target", {{6, 2}, dtype});
    auto scope = graph.scope("net");
    weight = variable("weight", {2, 3}, {});
    bias = variable("bias", {2}, {.decays = false});
    loss = ops::mean_squared_error(ops::linear(x_, weight, bias), target_);
  }

  Evaluator evaluator() {
    Evaluator evaluator(graph);
    evaluator.set(x_, values(x_, 1.0, 3));
    evaluator.set(target_, values(target_, 2.0, 5));
    evaluator.set(weight, values(weight, 0.5, 1));
    evaluator.set(bias, values(bias, 0.25, 2));
    return evaluator;
  }
  Tensor x() const { return x_; }

  Graph graph;
  Variable weight, bias;
  Tensor loss;

 private:
  Variable variable(std::string_view name, const Shape& shape, VariableOptions options) {
    return graph.variable(name, {shape, dtype_}, ops::make_constant({shape, dtype_}, 0), options);
  }
  static Array values(Tensor tensor, double scale, int shift) {
    Array array(tensor.info());
    for (std::int64_t i = 0; i < array.elements(); ++i) {
      array.set(i, scale * static_cast<double>((i * 7 + shift) % 11 - 5) / 5);
    }
    return array;
  }

  DType dtype_;
  Tensor x_, target_;
};

struct Case {
  std::string name;
  std::function<Optimizer(Tensor)> optimize;
};

void PrintTo(const Case& which, std::ostream* stream) {
  *stream << which.name;
}

std::vector<Case> cases() {
  Schedule halving;
  halving.kind = Schedule::Kind::step;
  halving.warm_up = 2;
  halving.step = 2;
  halving.factor = 0.5;
  const double rate = 0.125;
  return {
      {"sgd", [=](Tensor loss) { return sgd(loss, {.learning_rate = rate}); }},
      {"sgd_decay", [=](Tensor loss) { return sgd(loss, {.learning_rate = rate, .weight_decay = 0.1}); }},
      {"sgd_step", [=](Tensor loss) { return sgd(loss, {.learning_rate = rate, .schedule = halving}); }},
      {"sgd_clip_value", [=](Tensor loss) { return sgd(loss, {.learning_rate = rate, .clip_value = 0.3}); }},
      {"sgd_clip_norm", [=](Tensor loss) { return sgd(loss, {.learning_rate = rate, .clip_norm = 0.5}); }},
      {"sgd_clip_norm_not_reached",
       [=](Tensor loss) { return sgd(loss, {.learning_rate = rate, .clip_norm = 100}); }},
      {"momentum", [=](Tensor loss) { return momentum(loss, {.learning_rate = rate, .momentum = 0.9}); }},
      {"momentum_decay",
       [=](Tensor loss) {
         return momentum(loss, {.learning_rate = rate, .momentum = 0.8, .weight_decay = 0.1});
       }},
      {"nesterov",
       [=](Tensor loss) {
         return momentum(loss,
                         {.learning_rate = rate, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1});
       }},
      {"adam", [](Tensor loss) { return adam(loss, {.learning_rate = 0.0625}); }},
      {"adam_decay",
       [](Tensor loss) {
         return adam(
             loss,
             {.learning_rate = 0.0625, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1});
       }},
      {"adamw", [](Tensor loss) { return adamw(loss, {.learning_rate = 0.0625, .weight_decay = 0.1}); }},
  };
}

class GoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  static nlohmann::json golden() {
    return parse_json(io::read_file("tests/optim/golden/optimizers.json")).at(GetParam().name);
  }

  static void expect_close(const Array& got, const nlohmann::json& expected, double tolerance) {
    ASSERT_EQ(got.elements(), static_cast<std::int64_t>(expected.size()));
    for (std::int64_t i = 0; i < got.elements(); ++i) {
      const double value = expected[static_cast<std::size_t>(i)].get<double>();
      EXPECT_NEAR(got.at(i), value, tolerance * (1 + std::abs(value))) << i;
    }
  }

  static void run(DType dtype, double tolerance) {
    const nlohmann::json expected = golden();
    Regression regression(dtype);
    const Optimizer optimizer = GetParam().optimize(regression.loss);
    verify(regression.graph);
    Evaluator evaluator = regression.evaluator();
    for (std::size_t step = 0; step < expected["losses"].size(); ++step) {
      std::vector<Tensor> wanted = {regression.loss};
      if (optimizer.gradient_norm.valid()) wanted.push_back(optimizer.gradient_norm);
      const std::vector<Array> got = evaluator.step(wanted);
      EXPECT_NEAR(got[0].at(0), expected["losses"][step].get<double>(), tolerance * 2);
      ASSERT_EQ(optimizer.gradient_norm.valid(), expected.contains("norms"));
      if (got.size() > 1) {
        EXPECT_NEAR(got[1].at(0), expected["norms"][step].get<double>(), tolerance * 2);
      }
    }
    expect_close(evaluator.compute(regression.weight), expected["weight"], tolerance);
    expect_close(evaluator.compute(regression.bias), expected["bias"], tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(GoldenTest, FiveStepsAreThoseOfPyTorchInDoublePrecision) {
  run(DType::f64, 1e-12);
}

TEST_P(GoldenTest, FiveStepsAreThoseOfPyTorchInSinglePrecision) {
  run(DType::f32, 2e-6);
}

TEST(OptimizersTest, StateIsNamedAfterItsVariable) {
  Regression first;
  momentum(first.loss);
  std::vector<std::string> paths;
  for (const Variable variable : first.graph.variables()) {
    paths.push_back(variable.path());
    EXPECT_TRUE(variable.has_next());
    const bool learnt = variable == first.weight || variable == first.bias;
    EXPECT_EQ(variable.trainable(), learnt);
    EXPECT_EQ(variable.decays(), variable == first.weight);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"net/weight", "net/bias", "optimizer/net/weight/momentum",
                                             "optimizer/net/bias/momentum"}));
  Regression second;
  adam(second.loss);
  for (const char* path : {"optimizer/net/weight/first_moment", "optimizer/net/weight/second_moment",
                           "optimizer/net/bias/first_moment", "optimizer/net/bias/second_moment"}) {
    EXPECT_TRUE(second.graph.find_variable(path).has_next()) << path;
  }
}

TEST(OptimizersTest, WatchesTheLossAndTellsWhatItLearns) {
  Regression regression;
  const Optimizer optimizer = sgd(regression.loss);
  EXPECT_EQ(regression.graph.watched(), std::vector<Tensor>{regression.loss});
  EXPECT_EQ(optimizer.variables, (std::vector<Variable>{regression.weight, regression.bias}));
  ASSERT_EQ(optimizer.gradients.size(), 2U);
  EXPECT_EQ(optimizer.gradients[0].info(), regression.weight.info());
  EXPECT_EQ(optimizer.learning_rate.info(), (TensorInfo{{}, DType::f32}));
  EXPECT_FALSE(optimizer.gradient_norm.valid());
}

TEST(OptimizersTest, TheLearningRateFollowsItsSchedule) {
  Regression regression;
  Schedule schedule;
  schedule.kind = Schedule::Kind::cosine;
  schedule.base = 99;  // the optimiser's own counts
  schedule.warm_up = 2;
  schedule.length = 4;
  const Optimizer optimizer = sgd(regression.loss, {.learning_rate = 0.5, .schedule = schedule});
  Evaluator evaluator = regression.evaluator();
  for (int t = 0; t < 8; ++t) {
    const double expected = t < 2   ? 0.5 * (t + 1) / 2
                            : t < 6 ? 0.25 * (1 + std::cos(std::acos(-1.0) * (t - 2) / 4))
                                    : 0;
    EXPECT_NEAR(evaluator.step({optimizer.learning_rate})[0].at(0), expected, 1e-7) << t;
  }
}

/// Two linear layers, the second one and the loss at another location, after three steps.
std::vector<Array> after_three_steps(Location second, const std::function<void(Tensor)>& optimize) {
  Graph graph;
  const Tensor x = graph.input("x", {{4, 3}, DType::f32});
  const auto weight = [&](const char* name, Shape shape, double value) {
    return graph.variable(name, {shape, DType::f32}, ops::make_constant({shape, DType::f32}, value));
  };
  const Variable near = weight("near", {5, 3}, 0.5);
  Tensor hidden = ops::linear(x, near);
  auto placement = graph.at(second);
  const Variable far = weight("far", {2, 5}, 0.25);
  const Tensor target = graph.input("target", {{4, 2}, DType::f32});
  const Tensor loss = ops::mean_squared_error(ops::linear(ops::copy(hidden, second), far), target);
  optimize(loss);
  verify(graph);
  Evaluator evaluator(graph);
  Array values(x.info());
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i % 5) - 1);
  evaluator.set(x, values);
  evaluator.set(target, Array(target.info()));
  for (int i = 0; i < 3; ++i) evaluator.step({loss});
  return evaluator.compute({near, far});
}

TEST(OptimizersTest, LearnsVariablesWhereTheyLie) {
  for (const auto& optimize : std::vector<std::function<void(Tensor)>>{
           [](Tensor loss) { sgd(loss, {.clip_norm = 0.5}); },
           [](Tensor loss) { momentum(loss, {.weight_decay = 0.1}); },
           [](Tensor loss) { adam(loss, {.clip_value = 0.25, .clip_norm = 0.5}); }}) {
    const std::vector<Array> one_place = after_three_steps(Location{}, optimize);
    const std::vector<Array> two_places = after_three_steps(Location::parse("cpu:1"), optimize);
    EXPECT_EQ(one_place, two_places);
    EXPECT_NE(one_place[0].at(0), 0.5);
  }
}

TEST(OptimizersTest, LearnsOnlyWhatIsNamed) {
  Regression regression;
  const Optimizer optimizer = sgd(regression.loss, {.variables = {regression.bias}});
  EXPECT_EQ(optimizer.variables, std::vector<Variable>{regression.bias});
  EXPECT_FALSE(regression.weight.has_next());
  EXPECT_TRUE(regression.bias.has_next());
}

TEST(OptimizersTest, LeavesAloneWhatTheLossDoesNotDependOn) {
  Regression regression;
  const TensorInfo info{{3}, DType::f64};
  const Variable unused = regression.graph.variable("unused", info, ops::make_constant(info, 0));
  const Variable fixed =
      regression.graph.variable("fixed", info, ops::make_constant(info, 0), {.trainable = false});
  EXPECT_EQ(sgd(regression.loss).variables, (std::vector<Variable>{regression.weight, regression.bias}));
  EXPECT_FALSE(unused.has_next());
  EXPECT_FALSE(fixed.has_next());
}

TEST(OptimizersTest, ANonFiniteGradientStopsBeforeItsUpdate) {
  Regression regression;
  sgd(regression.loss, {.clip_value = 1});  // which would hide it
  Evaluator evaluator = regression.evaluator();
  // The weight is 0 and the bias 100, so that predictions are finite; their errors times x are not.
  Array x(regression.x().info());
  x.set(0, 1.5e308);
  evaluator.set(regression.x(), x);
  evaluator.set(regression.weight, Array(regression.weight.info()));
  evaluator.set(regression.bias, Array(regression.bias.info(), {100, 100}));
  EXPECT_TRUE(std::isfinite(evaluator.compute(regression.loss).at(0)));
  EXPECT_EQ(
      error_text([&] { evaluator.step({regression.loss}); }),
      "[check_finite] optimizer/net/weight/check_finite: the gradient of net/weight is infinity at [0, 0] of "
      "f64[2, 3]");
  EXPECT_EQ(evaluator.compute(regression.weight), Array(regression.weight.info()));
}

TEST(OptimizersTest, ANonFiniteLossStopsEveryUpdate) {
  Regression regression;
  sgd(regression.loss);
  Evaluator evaluator = regression.evaluator();
  Array x(regression.x().info());
  x.set(4, std::numeric_limits<double>::infinity());
  evaluator.set(regression.x(), x);
  for (const Variable variable : {regression.weight, regression.bias}) {
    EXPECT_EQ(error_text([&] { evaluator.compute(variable.next()); }),
              "[check_finite] optimizer/check_loss: the loss is infinity");
  }
}

TEST(OptimizersTest, RefusesOptionsOutOfRange) {
  Regression regression;
  const Tensor loss = regression.loss;
  EXPECT_EQ(error_text([&] { sgd(loss, {.learning_rate = -1}); }),
            "[sgd] learning_rate is -1, it must be a finite number of at least 0");
  EXPECT_EQ(error_text([&] { sgd(loss, {.learning_rate = std::nan("")}); }),
            "[sgd] learning_rate is nan, it must be a finite number of at least 0");
  EXPECT_EQ(error_text([&] { sgd(loss, {.weight_decay = -0.5}); }),
            "[sgd] weight_decay is -0.5, it must be a finite number of at least 0");
  EXPECT_EQ(error_text([&] { momentum(loss, {.momentum = 1}); }),
            "[momentum] momentum is 1, it must be a number from 0 to below 1");
  EXPECT_EQ(error_text([&] { momentum(loss, {.momentum = 0, .nesterov = true}); }),
            "[momentum] nesterov needs a momentum above 0; hint: set momentum, for instance to 0.9");
  EXPECT_EQ(error_text([&] { momentum(loss, {.clip_value = -1}); }),
            "[momentum] clip_value is -1, it must be a finite number of at least 0");
  EXPECT_EQ(error_text([&] { adam(loss, {.beta2 = 1.5}); }),
            "[adam] beta2 is 1.5, it must be a number from 0 to below 1");
  EXPECT_EQ(error_text([&] { adamw(loss, {.epsilon = 0}); }),
            "[adamw] epsilon is 0, it must be a finite number above 0");
  EXPECT_EQ(error_text([&] { adamw(loss, {.clip_norm = -1}); }),
            "[adamw] clip_norm is -1, it must be a finite number of at least 0");
  // Nothing was added before the options were found wrong.
  EXPECT_EQ(regression.graph.operator_count(), 2U);
}

TEST(OptimizersTest, TwoOptimisersDoNotLearnOneVariable) {
  Regression regression;
  sgd(regression.loss, {.variables = {regression.bias}});
  EXPECT_EQ(
      error_text([&] { sgd(regression.loss); }),
      "[sgd] net/bias: has a next value already, optimizer/net/bias/sgd_update; hint: one optimiser learns "
      "a variable; name others in the options' variables");
}

TEST(OptimizersTest, NeedsSomethingToLearn) {
  Graph graph;
  const Tensor prediction = graph.input("prediction", {{3}, DType::f32});
  const Tensor loss = ops::mean_squared_error(prediction, prediction);
  EXPECT_EQ(
      error_text([&] { sgd(loss); }),
      "[sgd] the loss mean_squared_error depends on no trainable variable; hint: layers of purine/nn make "
      "variables; Graph::variable makes trainable ones by default");
}

}  // namespace
}  // namespace purine::optim
