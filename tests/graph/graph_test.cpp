#include "purine/graph/graph.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/simple_contract.h"

namespace purine {
namespace {

using test::error_text;
using test::simple;

const TensorInfo vector_info{{4}, DType::f32};
const TensorInfo matrix_info{{2, 3}, DType::f32};

Tensor add(Graph& graph, std::string_view name, std::initializer_list<Tensor> inputs = {}) {
  return graph.add(simple("noop", {vector_info}), inputs, name).output();
}

TEST(GraphTest, KnowsItsVertices) {
  Graph graph;
  const Tensor image = graph.input("image", vector_info);
  const Variable weight =
      graph.variable("weight", vector_info, simple("zeros", {vector_info}), {.decays = false});
  const Operator op = graph.add(simple("pair", {vector_info, matrix_info}), {image, weight, image});

  EXPECT_EQ(graph.tensor_count(), 4U);
  EXPECT_EQ(graph.operator_count(), 1U);
  EXPECT_FALSE(image.has_producer());
  EXPECT_FALSE(graph.is_variable(image));
  EXPECT_TRUE(graph.is_variable(weight));
  EXPECT_TRUE(weight.trainable());
  EXPECT_FALSE(weight.decays());
  EXPECT_EQ(weight.initial().type(), "zeros");
  EXPECT_EQ(op.path(), "pair");
  EXPECT_EQ(op.inputs(), (std::vector<Tensor>{image, weight, image}));
  EXPECT_EQ(op.output(1).path(), "pair:1");
  EXPECT_EQ(op.output(1).info(), matrix_info);
  EXPECT_EQ(op.output(1).output_index(), 1);
  EXPECT_EQ(op.output(1).producer(), op);
  EXPECT_EQ(graph.find_variable("weight"), weight);
  EXPECT_FALSE(graph.find_variable("image").valid());
  EXPECT_EQ(graph.find_input("image"), image);
  EXPECT_FALSE(graph.find_input("weight").valid());
}

TEST(GraphTest, ScopesAreEnteredAgainByTheirNumbers) {
  Graph graph;
  const Graph::ScopeNumber first = graph.scope_number({}, "@1/lenet");
  EXPECT_EQ(graph.scope_number({}, "@1/lenet").value, first.value);
  EXPECT_EQ(graph.scope_number(first, "").value, first.value);
  const Graph::ScopeNumber inner = graph.scope_number(first, "conv_2/body");
  {
    auto outer = graph.scope("other");
    auto scope = graph.reopen_scope(inner);
    EXPECT_EQ(graph.current_scope(), "@1/lenet/conv_2/body");
    EXPECT_EQ(add(graph, "relu").path(), "@1/lenet/conv_2/body/relu");
    EXPECT_EQ(add(graph, "relu").path(), "@1/lenet/conv_2/body/relu_2");
  }
  EXPECT_EQ(graph.current_scope(), "");
  EXPECT_EQ(error_text([&] { graph.scope_number({}, "a//b"); }), "[graph] the name 'a//b' has an empty part");
}

TEST(GraphTest, FindsVariablesAndInputsInNumberedScopes) {
  Graph graph;
  std::vector<Variable> weights;
  for (int i = 0; i < 2; ++i) {
    auto scope = graph.scope("block");
    weights.push_back(graph.variable("weight_3", vector_info, simple("zeros", {vector_info})));
  }
  const Tensor image = graph.input("data/image", vector_info);
  EXPECT_EQ(graph.find_variable("block/weight_3"), weights[0]);
  EXPECT_EQ(graph.find_variable("block_2/weight_3"), weights[1]);
  EXPECT_EQ(graph.find_input("data/image"), image);
  EXPECT_FALSE(graph.find_variable("block_3/weight_3").valid());
  EXPECT_FALSE(graph.find_variable("block").valid());
  EXPECT_FALSE(graph.find_variable("block/weight").valid());
  EXPECT_FALSE(graph.find_input("image").valid());
  EXPECT_FALSE(graph.find_input("").valid());
}

TEST(GraphTest, ScopesMakePaths) {
  Graph graph;
  {
    auto outer = graph.scope("lenet");
    {
      auto inner = graph.scope("conv1");
      EXPECT_EQ(graph.current_scope(), "lenet/conv1");
      EXPECT_EQ(add(graph, "conv2d").path(), "lenet/conv1/conv2d");
    }
    EXPECT_EQ(add(graph, "relu").path(), "lenet/relu");
  }
  EXPECT_EQ(graph.current_scope(), "");
  EXPECT_EQ(add(graph, "relu").path(), "relu");
}

TEST(GraphTest, AScopeThatExistsIsMadeAgainWithANumber) {
  Graph graph;
  for (const char* path : {"block/op", "block_2/op", "block_3/op"}) {
    auto scope = graph.scope("block");
    EXPECT_EQ(add(graph, "op").path(), path);
  }
  auto scope = graph.scope("block_2");
  EXPECT_EQ(graph.current_scope(), "block_4");
}

TEST(GraphTest, AScopesPathEntersItsOuterScopesAsTheyAre) {
  Graph graph;
  {
    auto scope = graph.scope("encoder/block_1");
    EXPECT_EQ(graph.current_scope(), "encoder/block_1");
  }
  {
    auto scope = graph.scope("encoder/block_2");
    EXPECT_EQ(graph.current_scope(), "encoder/block_2");
  }
  auto scope = graph.scope("encoder");
  EXPECT_EQ(graph.current_scope(), "encoder_2");
}

TEST(GraphTest, ATakenNameGetsTheNextFreeNumber) {
  Graph graph;
  EXPECT_EQ(add(graph, "relu").path(), "relu");
  EXPECT_EQ(add(graph, "relu").path(), "relu_2");
  EXPECT_EQ(add(graph, "relu_2").path(), "relu_3");
  EXPECT_EQ(add(graph, "relu_5").path(), "relu_5");
  EXPECT_EQ(add(graph, "relu").path(), "relu_4");
  EXPECT_EQ(add(graph, "relu").path(), "relu_6");
}

TEST(GraphTest, AFreeNameIsGivenInAnyOrder) {
  Graph graph;
  for (const char* name : {"conv_3", "conv_2", "conv", "conv_1", "conv_02", "conv_", "conv_4294967295",
                           "conv_4294967296", "_2"}) {
    EXPECT_EQ(add(graph, name).path(), name);
  }
  EXPECT_EQ(add(graph, "conv").path(), "conv_4");
  EXPECT_EQ(add(graph, "conv_1").path(), "conv_1_2");
  EXPECT_EQ(add(graph, "conv_02").path(), "conv_02_2");
  EXPECT_EQ(add(graph, "conv_4294967295").path(), "conv_5");
}

TEST(GraphTest, ANameMayBeAPathBelowTheCurrentScope) {
  Graph graph;
  auto scope = graph.scope("optimizer");
  for (const char* name : {"conv1/weight/momentum", "conv1/bias/momentum", "conv2/weight/momentum"}) {
    const Variable state = graph.variable(name, vector_info, simple("zeros", {vector_info}));
    EXPECT_EQ(state.path(), "optimizer/" + std::string(name));
    EXPECT_EQ(graph.find_variable(state.path()), state);
  }
  EXPECT_EQ(add(graph, "conv1/weight/update").path(), "optimizer/conv1/weight/update");
  EXPECT_EQ(graph.current_scope(), "optimizer");
}

TEST(GraphTest, VariablesAndInputsNeedPathsOfTheirOwn) {
  Graph graph;
  auto scope = graph.scope("net");
  graph.variable("weight_2", vector_info, simple("zeros", {vector_info}));
  graph.variable("weight", vector_info, simple("zeros", {vector_info}));
  EXPECT_EQ(
      error_text([&] { graph.variable("weight", vector_info, simple("zeros", {vector_info})); }),
      "[graph] a vertex named net/weight exists already; variables need names of their own; hint: build the "
      "block in a scope of its own: auto scope = graph.scope(\"block_2\")");
  graph.input("image", vector_info);
  EXPECT_EQ(
      error_text([&] { graph.input("image", vector_info); }),
      "[graph] a vertex named net/image exists already; inputs need names of their own; hint: build the "
      "block in a scope of its own: auto scope = graph.scope(\"block_2\")");
  EXPECT_EQ(graph.tensor_count(), 3U);
}

TEST(GraphTest, RefusesBadNamesAndMakesNothingOfThem) {
  Graph graph;
  EXPECT_EQ(error_text([&] { add(graph, "a b"); }),
            "[graph] the name 'a b' holds the character ' '; hint: names are made of letters, digits, '_', "
            "'-' and '.'; '/' separates the scopes of a path");
  EXPECT_EQ(error_text([&] { graph.input("", vector_info); }), "[graph] a name is empty");
  EXPECT_EQ(error_text([&] { auto scope = graph.scope("encoder/"); }),
            "[graph] the name 'encoder/' has an empty part");
  EXPECT_EQ(error_text([&] { auto scope = graph.scope("/encoder"); }),
            "[graph] the name '/encoder' has an empty part");
  EXPECT_EQ(graph.current_scope(), "");
  EXPECT_EQ(graph.operator_count(), 0U);
  EXPECT_EQ(graph.tensor_count(), 0U);
  auto scope = graph.scope("encoder");
  EXPECT_EQ(graph.current_scope(), "encoder");
}

TEST(GraphTest, RefusesTensorsOfOthers) {
  Graph graph;
  Graph other;
  const Tensor foreign = other.input("image", vector_info);
  auto scope = graph.scope("net");
  EXPECT_EQ(error_text([&] { add(graph, "op", {foreign}); }),
            "[noop] net/op: tensor image belongs to another graph");
  EXPECT_EQ(error_text([&] { add(graph, "op", {Tensor()}); }),
            "[noop] net/op: a tensor handle is empty; hint: use a tensor that the graph returned");
  EXPECT_EQ(error_text([&] { graph.watch(foreign); }), "[watch] tensor image belongs to another graph");
  EXPECT_EQ(graph.operator_count(), 0U);
}

TEST(GraphTest, AContractsErrorNamesTheOperator) {
  class Refusing final : public Contract {
   public:
    std::string_view type() const override { return "refusing"; }
    std::string attributes() const override { return {}; }
    std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override {
      throw Error(type(), "takes no input", "give none");
    }
    std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
    std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
    ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
      return self();
    }
    Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
    std::vector<Sharing> sharing() const override { return {}; }
    LayoutRule layouts() const override { return {}; }
  };
  Graph graph;
  auto scope = graph.scope("net");
  EXPECT_EQ(error_text([&] { graph.add(std::make_shared<Refusing>(), {}); }),
            "[refusing] net/refusing: takes no input; hint: give none");
  EXPECT_EQ(error_text([&] { graph.variable("weight", vector_info, std::make_shared<Refusing>()); }),
            "[refusing] net/weight: takes no input; hint: give none");
}

TEST(GraphTest, AVariableStartsAsItsInitialValue) {
  Graph graph;
  EXPECT_EQ(error_text([&] { graph.variable("weight", vector_info, simple("zeros", {matrix_info})); }),
            "[variable] weight: the initial value from zeros is f32[2, 3], the variable is f32[4]");
  EXPECT_EQ(error_text([&] { graph.variable("weight", vector_info, simple("nothing", {})); }),
            "[variable] weight: the initial value from nothing is nothing, the variable is f32[4]");
  // A variable that was refused has not taken the name.
  EXPECT_TRUE(graph.variable("weight", vector_info, simple("zeros", {vector_info})).valid());
}

TEST(GraphTest, AVariableHasOneNextValue) {
  Graph graph;
  auto scope = graph.scope("net");
  const Variable weight = graph.variable("weight", vector_info, simple("zeros", {vector_info}));
  EXPECT_FALSE(weight.has_next());
  const Tensor matrix = graph.add(simple("matrix", {matrix_info}), {}).output();
  EXPECT_EQ(error_text([&] { graph.set_next(weight, matrix); }),
            "[variable] net/weight: is f32[4], its next value net/matrix is f32[2, 3]");
  const Tensor next = add(graph, "update", {weight});
  graph.set_next(weight, next);
  EXPECT_EQ(weight.next(), next);
  EXPECT_EQ(error_text([&] { graph.set_next(weight, add(graph, "again", {weight})); }),
            "[variable] net/weight: has a next value already, net/update; net/again would be a second one; "
            "hint: one optimiser updates a variable once an iteration");
  Graph other;
  EXPECT_EQ(error_text([&] { graph.set_next(weight, other.input("x", vector_info)); }),
            "[variable] tensor x belongs to another graph");
  EXPECT_THROW(graph.set_next(Variable(&graph, next.index()), next), std::logic_error);
}

TEST(GraphTest, WatchesATensorOnce) {
  Graph graph;
  const Tensor first = add(graph, "first");
  const Tensor second = add(graph, "second");
  graph.watch(second);
  graph.watch(first);
  graph.watch(second);
  EXPECT_EQ(graph.watched(), (std::vector<Tensor>{second, first}));
}

TEST(GraphTest, VerticesAreMadeAtTheCurrentLocation) {
  Graph graph;
  const Location second = Location::parse("1/cuda:2");
  Tensor placed;
  {
    auto placement = graph.at(second);
    placed = add(graph, "placed");
    EXPECT_EQ(graph.input("image", vector_info).location(), second);
  }
  EXPECT_EQ(placed.location(), second);
  EXPECT_EQ(placed.producer().location(), second);
  EXPECT_EQ(add(graph, "default").location(), Location{});
}

TEST(ConsumersTest, ListsReadersOnceInOperatorOrder) {
  Graph graph;
  const Tensor x = graph.input("x", vector_info);
  const Tensor unread = graph.input("unread", vector_info);
  const Tensor a = add(graph, "a", {x, x});
  add(graph, "b", {a, x});
  add(graph, "c", {x});
  const Consumers consumers(graph);
  const auto list = [&](Tensor tensor) {
    const auto span = consumers.of(tensor.index());
    return std::vector<std::uint32_t>(span.begin(), span.end());
  };
  EXPECT_EQ(list(x), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(list(a), (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(list(unread).empty());
}

}  // namespace
}  // namespace purine
