#include "purine/gradient/gradient.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/ops/activation.h"
#include "purine/ops/binary.h"
#include "purine/ops/cast.h"
#include "purine/ops/constant.h"
#include "purine/ops/loss.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/unary.h"
#include "tests/support/error_text.h"

namespace purine {
namespace {

using test::error_text;

const TensorInfo vector_info{{3}, DType::f64};

Variable vector_variable(Graph& graph, std::string_view name, double value = 1) {
  return graph.variable(name, vector_info, ops::make_constant(vector_info, value));
}

std::vector<std::string> operators_from(Graph& graph, std::uint32_t first) {
  std::vector<std::string> paths;
  for (std::uint32_t i = first; i < graph.operator_count(); ++i) paths.push_back(graph.op(i).path());
  return paths;
}

TEST(GradientTest, IsNotValidWhereTheLossDoesNotDepend) {
  Graph graph;
  const Tensor x = graph.input("x", vector_info);
  const Tensor y = graph.input("y", vector_info);
  const Tensor after = ops::relu(x);
  const Tensor loss = ops::sum(x);
  ops::relu(after);
  const std::uint32_t before = graph.operator_count();
  EXPECT_FALSE(gradients(loss, {y})[0].valid());
  EXPECT_FALSE(gradients(loss, {after})[0].valid());
  EXPECT_EQ(graph.operator_count(), before);
  const std::vector<Tensor> both = gradients(loss, {y, x});
  EXPECT_FALSE(both[0].valid());
  EXPECT_TRUE(both[1].valid());
}

TEST(GradientTest, AddsOnlyWhatLeadsToWhatIsAskedFor) {
  Graph graph;
  const Tensor image = graph.input("image", vector_info);
  const Variable weight = vector_variable(graph, "weight");
  const Variable unused = vector_variable(graph, "unused");
  const Tensor product = ops::multiply(ops::relu(image), weight);
  const Tensor aside = ops::sum(ops::exp(product));
  const Tensor loss = ops::sum(ops::add(product, ops::relu(unused)));
  const std::uint32_t before = graph.operator_count();
  gradients(loss, {weight});
  EXPECT_EQ(operators_from(graph, before),
            (std::vector<std::string>{"gradient/seed", "gradient/reshape", "gradient/broadcast_to",
                                      "gradient/multiply"}));
  EXPECT_TRUE(aside.valid());
}

TEST(GradientTest, SumsContributionsOnceAndLastReaderFirst) {
  Graph graph;
  const Tensor x = graph.input("x", vector_info);
  const Tensor first = ops::scale(x, 2);
  const Tensor second = ops::scale(x, 3);
  const Tensor third = ops::scale(x, 4);
  const Tensor loss = ops::sum(ops::add(ops::add(first, second), third));
  const Tensor gradient = gradients(loss, {x})[0];
  const Operator sum = gradient.producer();
  ASSERT_EQ(sum.type(), "sum_n");
  ASSERT_EQ(sum.input_count(), 3);
  EXPECT_EQ(sum.input(0).producer().contract().attributes(), "factor=4");
  EXPECT_EQ(sum.input(1).producer().contract().attributes(), "factor=3");
  EXPECT_EQ(sum.input(2).producer().contract().attributes(), "factor=2");
}

TEST(GradientTest, KeepsScopesLegible) {
  Graph graph;
  const Variable weight = vector_variable(graph, "net/weight");
  Tensor x = weight;
  for (int i = 0; i < 3; ++i) {
    const auto block = graph.scope("net/block");
    x = ops::sigmoid(x);
    const auto inner = graph.scope("inner");
    x = ops::exp(x);
  }
  const Tensor loss = ops::sum(x, {}, false, "net/loss");
  const std::uint32_t before = graph.operator_count();
  const Tensor gradient = gradients(loss, {weight})[0];
  EXPECT_EQ(operators_from(graph, before),
            (std::vector<std::string>{
                "gradient/net/seed", "gradient/net/reshape", "gradient/net/broadcast_to",
                "gradient/net/block_3/inner/multiply", "gradient/net/block_3/sigmoid_gradient",
                "gradient/net/block_2/inner/multiply", "gradient/net/block_2/sigmoid_gradient",
                "gradient/net/block/inner/multiply", "gradient/net/block/sigmoid_gradient"}));
  const std::uint32_t first_order = graph.operator_count();
  gradients(ops::sum(gradient, {}, false, "again"), {weight});
  EXPECT_EQ(graph.op(first_order).path(), "again");
  EXPECT_EQ(graph.op(first_order + 1).path(), "gradient_2/seed");
  EXPECT_EQ(graph.op(first_order + 4).path(), "gradient_2/gradient/net/block/sigmoid_gradient");
}

TEST(GradientTest, LiesWhereTheOperatorsLie) {
  Graph graph;
  const Location one = Location::parse("cpu:1");
  const Location two = Location::parse("cpu:2");
  Variable weight;
  Tensor x;
  {
    const auto place = graph.at(one);
    weight = vector_variable(graph, "weight");
    x = ops::add(ops::sigmoid(weight), ops::tanh(weight));
  }
  Tensor loss;
  {
    const auto place = graph.at(two);
    loss = ops::sum(graph.input("x", vector_info));
  }
  gradients(ops::sum(x), {weight});
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    const bool of_the_sum = op.type() == "sum" || op.type() == "constant" || op.type() == "broadcast_to" ||
                            op.type() == "reshape";
    if (!of_the_sum) {
      EXPECT_EQ(op.location(), one) << op.path();
    }
  }
  const Tensor by_input = gradients(loss, {graph.find_input("x")})[0];
  EXPECT_EQ(by_input.location(), two);
  EXPECT_TRUE(loss.valid());
}

TEST(GradientTest, StopsAtIntegers) {
  Graph graph;
  const Tensor x = graph.input("x", vector_info);
  const Tensor rounded = ops::cast(ops::cast(x, DType::i64), DType::f64);
  EXPECT_FALSE(gradients(ops::sum(rounded), {x})[0].valid());
  // Labels are no reason to differentiate by them.
  const Tensor logits = graph.input("logits", {{4, 3}, DType::f32});
  const Tensor labels = graph.input("labels", {{4}, DType::i64});
  EXPECT_TRUE(gradients(ops::softmax_cross_entropy(logits, labels), {logits})[0].valid());
}

TEST(GradientTest, NamesTheOperatorWithoutAGradient) {
  Graph graph;
  const Tensor logits = graph.input("logits", {{4, 3}, DType::f32});
  const Tensor labels = graph.input("labels", {{4}, DType::i64});
  const Tensor accuracy = ops::accuracy(logits, labels, 1, "head/accuracy");
  const Tensor loss = ops::scale(accuracy, -1, "loss");
  EXPECT_EQ(
      error_text([&] { gradients(loss, {logits}); }),
      "[accuracy] head/accuracy: has no gradient, and the loss loss depends on a parameter through it; hint: "
      "take the loss of a tensor before it");
  // Off the path it is no error.
  const Tensor other = ops::add(ops::sum(logits), loss);
  EXPECT_NO_THROW(
      gradients(other, {graph.variable("unread", vector_info, ops::make_constant(vector_info, 0))}));
}

TEST(GradientTest, RefusesWhatIsNoScalarLossOrNotFloating) {
  Graph graph;
  const Tensor x = graph.input("x", vector_info);
  const Tensor labels = graph.input("labels", {{4}, DType::i64});
  EXPECT_EQ(
      error_text([&] { gradients(x, {x}); }),
      "[gradient] x: the loss is f64[3], a floating scalar is needed; hint: ops::sum and ops::mean make one");
  EXPECT_EQ(error_text([&] { gradients(ops::sum(x), {labels}); }),
            "[gradient] labels: is i64[4], only floating tensors have gradients");
  EXPECT_EQ(error_text([&] { gradients(Tensor(), {x}); }), "[gradient] the loss is an empty tensor handle");
  Graph other;
  const Tensor foreign = other.input("foreign", vector_info);
  EXPECT_EQ(error_text([&] { gradients(ops::sum(x), {foreign}); }),
            "[gradient] foreign: belongs to another graph than the loss sum_2");
}

TEST(GradientTest, OfAHundredThousandOperators) {
  Graph graph;
  const Variable weight = vector_variable(graph, "weight");
  // A ladder: every rung reads the two before, so that there are exponentially many paths.
  Tensor before = weight;
  Tensor x = ops::sigmoid(weight);
  for (int i = 0; i < 50000; ++i) {
    const auto scope = graph.scope("rung");
    const Tensor next = ops::add(ops::sigmoid(x), before);
    before = x;
    x = next;
  }
  const Tensor loss = ops::sum(x);
  const std::uint32_t forward = graph.operator_count();
  const Tensor gradient = gradients(loss, {weight})[0];
  ASSERT_TRUE(gradient.valid());
  // One sigmoid_gradient and one sum_n a rung; add passes its gradient on.
  EXPECT_LE(graph.operator_count() - forward, forward + 10);
  verify(graph);
}

}  // namespace
}  // namespace purine
