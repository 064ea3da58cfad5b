#include <gtest/gtest.h>

#include "purine/graph/records.h"
#include "tests/support/error_text.h"
#include "tests/support/simple_contract.h"

namespace purine {
namespace {

using test::error_text;
using test::simple;

const TensorInfo four_floats{{4}, DType::f32};
const TensorInfo other_info{{5}, DType::f32};

/// x -> a -> b -> c, and a weight whose next value is c. Each test damages it in one way.
class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() : records_(graph_) {
    auto scope = graph_.scope("net");
    x_ = graph_.input("x", four_floats);
    weight_ = graph_.variable("weight", four_floats, simple("zeros", {four_floats}));
    a_ = add("a", {x_, weight_});
    b_ = add("b", {a_});
    c_ = add("c", {b_, weight_});
    graph_.set_next(weight_, c_);
    graph_.watch(b_);
  }

  Tensor add(std::string_view name, std::initializer_list<Tensor> inputs) {
    return graph_.add(simple("noop", {four_floats}), inputs, name).output();
  }
  GraphRecords::OperatorRecord& record(Tensor tensor) {
    return records_.operators[tensor.producer().index()];
  }
  std::string verify_error() {
    return error_text([&] { verify(graph_); });
  }

  Graph graph_;
  GraphRecords records_;
  Tensor x_, a_, b_, c_;
  Variable weight_;
};

TEST_F(VerifyTest, AcceptsAGoodGraph) {
  EXPECT_NO_THROW(verify(graph_));
  Graph empty;
  EXPECT_NO_THROW(verify(empty));
}

TEST_F(VerifyTest, ATensorHasOneProducer) {
  record(c_).first_output = record(a_).first_output;
  EXPECT_EQ(verify_error(), "[verify] tensor 4 is said to be output 0 of net/c, which does not have it");
}

TEST_F(VerifyTest, AnOperatorDoesNotMakeWhatAnotherMakes) {
  records_.tensors[b_.index()].producer = a_.producer().index();
  record(a_).output_count = 2;
  records_.tensors[b_.index()].extra = 1;
  EXPECT_EQ(
      verify_error(),
      "[verify] net/b: output 0 is tensor 3, which has a producer already, net/a; hint: a tensor has one "
      "producer");
}

TEST_F(VerifyTest, AnOperatorDoesNotMakeAVariable) {
  record(a_).first_output = weight_.index();
  record(a_).output_count = 2;
  records_.tensors[a_.index()].extra = 1;
  EXPECT_EQ(
      verify_error(),
      "[verify] net/a: output 0 is tensor 1, which is a variable or input; hint: a tensor has one producer");
}

TEST_F(VerifyTest, ATensorWithoutProducerIsAVariableOrAnInput) {
  records_.tensors[a_.index()].producer = GraphRecords::none;
  records_.tensors[a_.index()].extra = 7;
  EXPECT_EQ(verify_error(), "[verify] tensor 2 has no producer and must be one variable or one input");
}

TEST_F(VerifyTest, IndicesLeadSomewhere) {
  records_.operator_inputs[record(b_).first_input] = 99;
  EXPECT_EQ(verify_error(), "[verify] net/b: input 0 does not exist");
}

TEST_F(VerifyTest, ATensorHasAnInfo) {
  records_.tensors[b_.index()].info = 99;
  EXPECT_EQ(verify_error(), "[verify] tensor 3 has no shape and dtype");
}

TEST_F(VerifyTest, AnOperatorHasAContract) {
  record(b_).contract = nullptr;
  EXPECT_EQ(verify_error(), "[verify] net/b: has no contract");
}

TEST_F(VerifyTest, NamesTheCycle) {
  records_.operator_inputs[record(a_).first_input] = c_.index();
  EXPECT_EQ(
      verify_error(),
      "[verify] net/a: depends on its own result within an iteration: net/a -> net/b -> net/c -> net/a; "
      "hint: a value of the iteration before comes from a variable: Graph::set_next");
}

TEST_F(VerifyTest, NamesAnOperatorThatReadsItself) {
  records_.operator_inputs[record(b_).first_input] = b_.index();
  EXPECT_EQ(
      verify_error(),
      "[verify] net/b: depends on its own result within an iteration: net/b -> net/b; hint: a value of the "
      "iteration before comes from a variable: Graph::set_next");
}

TEST_F(VerifyTest, OperatorsComeAfterTheirInputs) {
  records_.operator_inputs[record(b_).first_input] = x_.index();
  records_.operator_inputs[record(a_).first_input] = c_.index();
  records_.operator_inputs[record(c_).first_input] = x_.index();
  EXPECT_EQ(verify_error(),
            "[verify] net/a: reads net/c, which comes after it; hint: vertices are numbered in a topological "
            "order: add an operator after its inputs");
}

TEST_F(VerifyTest, RecordedInfosAreTheInferredOnes) {
  const auto contract = simple("noop", {four_floats});
  const Tensor d = graph_.add(contract, {x_}, "d").output();
  EXPECT_NO_THROW(verify(graph_));
  contract->infer_from_now_on({{{4}, DType::f64}});
  EXPECT_EQ(verify_error(), "[verify] d: output 0 is f32[4], its contract noop infers f64[4]");
  contract->infer_from_now_on({other_info});
  EXPECT_EQ(verify_error(), "[verify] d: output 0 is f32[4], its contract noop infers f32[5]");
  contract->infer_from_now_on({four_floats, four_floats});
  EXPECT_EQ(verify_error(), "[verify] d: has 1 outputs, its contract noop infers 2");
  EXPECT_TRUE(d.valid());
}

TEST_F(VerifyTest, OnlyCopyCrossesLocations) {
  auto placement = graph_.at(Location::parse("cpu:1"));
  const Tensor copied =
      graph_.add(simple("copy", {four_floats}, {.crosses_locations = true}), {x_}, "copied").output();
  const Tensor good = add("good", {copied});
  EXPECT_NO_THROW(verify(graph_));
  add("bad", {good, x_});
  EXPECT_EQ(verify_error(),
            "[verify] bad: reads net/x at 0/cpu:0, the operator is at 0/cpu:1; hint: Copy alone crosses "
            "locations: copy the tensor first, or place both together");
}

TEST_F(VerifyTest, AnOutputIsWhereItsOperatorIs) {
  records_.tensors[c_.index()].location = GraphRecords::intern(graph_, Location::parse("3/cuda:1"));
  EXPECT_EQ(verify_error(), "[verify] net/c: output 0 is at 3/cuda:1, the operator at 0/cpu:0");
}

TEST_F(VerifyTest, AVariableStaysWhereItIs) {
  const Variable state = graph_.variable("state", four_floats, simple("zeros", {four_floats}));
  auto placement = graph_.at(Location::parse("cpu:1"));
  graph_.set_next(state, add("elsewhere", {}));
  EXPECT_EQ(
      verify_error(),
      "[verify] state: is at 0/cpu:0, its next value elsewhere at 0/cpu:1; hint: a variable stays where it "
      "is: copy the next value to its location");
}

TEST_F(VerifyTest, NextValuesFit) {
  records_.variables[0].next = 99;
  EXPECT_EQ(verify_error(), "[verify] net/weight: has a next value that does not exist");
  records_.variables[0].next = graph_.input("y", other_info).index();
  EXPECT_EQ(verify_error(), "[verify] net/weight: is f32[4], its next value y is f32[5]");
}

TEST_F(VerifyTest, InitialValuesFit) {
  records_.variables[0].initial = simple("ones", {other_info});
  EXPECT_EQ(verify_error(), "[verify] net/weight: is f32[4], its initial value f32[5]");
  records_.variables[0].initial = nullptr;
  EXPECT_EQ(verify_error(), "[verify] net/weight: has no initial value");
}

TEST_F(VerifyTest, PathsAreUnique) {
  record(b_).name = record(a_).name;
  EXPECT_EQ(
      verify_error(),
      "[verify] net/a: another vertex has the same path; hint: paths name random streams and checkpoints");
}

TEST_F(VerifyTest, NamesAreValid) {
  record(b_).name.scope = 99;
  EXPECT_EQ(verify_error(), "[verify] operator 1 has no valid name");
}

TEST_F(VerifyTest, WatchedTensorsExist) {
  records_.watched.push_back(b_.index());
  EXPECT_EQ(verify_error(), "[verify] net/b: is watched twice");
  records_.watched.back() = 99;
  EXPECT_EQ(verify_error(), "[verify] a watched tensor does not exist");
}

}  // namespace
}  // namespace purine
