#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/graph/dot.h"
#include "tests/support/simple_contract.h"

namespace purine {
namespace {

using test::simple;

/// A small training graph at two locations: loss and update of one weight.
class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    const Tensor image = graph_.input("image", {{8, 3}, DType::f32});
    Tensor product;
    {
      auto scope = graph_.scope("net");
      const TensorInfo info{{5, 3}, DType::f32};
      weight_ = graph_.variable("weight", info, simple("uniform", {info}, {.attributes = "low=-1 high=1"}));
      graph_.variable("mean", {{5}, DType::f64}, simple("zeros", {{{5}, DType::f64}}),
                      {.trainable = false, .decays = false});
      product = graph_.add(simple("linear", {{{8, 5}, DType::f32}}), {image, weight_}).output();
      const Operator split = graph_.add(
          simple("split", {{{8, 2}, DType::f32}, {{8, 3}, DType::f32}}, {.attributes = "axis=1"}), {product});
      graph_.set_next(weight_, graph_.add(simple("update", {info}), {weight_, split.output(1)}).output());
    }
    auto placement = graph_.at(Location::parse("1/cuda:0"));
    const Operator copy =
        graph_.add(simple("copy", {{{8, 5}, DType::f32}}, {.crosses_locations = true}), {product}, "to_gpu");
    graph_.watch(graph_.add(simple("mean", {{{}, DType::f32}}), {copy.output()}, "loss").output());
  }

  Graph graph_;
  Variable weight_;
};

TEST_F(DumpTest, IsALineAVertex) {
  verify(graph_);
  EXPECT_EQ(dump(graph_), R"(input image: f32[8, 3] @0/cpu:0
variable net/weight: f32[5, 3] = uniform {low=-1 high=1} trainable decays next net/update @0/cpu:0
variable net/mean: f64[5] = zeros @0/cpu:0
net/linear = linear(image, net/weight) -> f32[8, 5] @0/cpu:0
net/split = split(net/linear) {axis=1} -> f32[8, 2], f32[8, 3] @0/cpu:0
net/update = update(net/weight, net/split:1) -> f32[5, 3] @0/cpu:0
to_gpu = copy(net/linear) -> f32[8, 5] @1/cuda:0
loss = mean(to_gpu) -> f32[] @1/cuda:0
watch loss
)");
}

TEST_F(DumpTest, JsonHoldsTheWholeGraph) {
  const auto parsed = parse_json(json(graph_));
  ASSERT_EQ(parsed["tensors"].size(), graph_.tensor_count());
  ASSERT_EQ(parsed["operators"].size(), graph_.operator_count());
  EXPECT_EQ(parsed["tensors"][1], parse_json(R"({"id": 1, "path": "net/weight", "dtype": "f32",
            "shape": [5, 3], "location": "0/cpu:0"})"));
  EXPECT_EQ(parsed["operators"][1], parse_json(R"({"id": 1, "path": "net/split", "type": "split",
            "attributes": "axis=1", "inputs": [3], "outputs": [4, 5], "location": "0/cpu:0"})"));
  EXPECT_EQ(parsed["variables"], parse_json(R"([
            {"tensor": 1, "initial": "uniform", "initial_attributes": "low=-1 high=1", "trainable": true,
             "decays": true, "next": 6},
            {"tensor": 2, "initial": "zeros", "initial_attributes": "", "trainable": false, "decays": false,
             "next": null}])"));
  EXPECT_EQ(parsed["inputs"], parse_json("[0]"));
  EXPECT_EQ(parsed["watched"], parse_json("[8]"));
}

TEST_F(DumpTest, JsonOfAnEmptyGraphIsValid) {
  Graph empty;
  EXPECT_EQ(parse_json(json(empty)),
            parse_json(R"({"tensors": [], "operators": [], "variables": [], "inputs": [], "watched": []})"));
}

TEST_F(DumpTest, DotShowsScopesAsClustersAndLocationsAsColours) {
  EXPECT_EQ(dot(graph_), R"(digraph purine {
  rankdir=TB;
  newrank=true;
  node [fontname="Helvetica", style=filled];
  subgraph "cluster_locations" {
    label="locations";
    "at 0/cpu:0" [shape=box, label="0/cpu:0", fillcolor="#cfe2f3"];
    "at 1/cuda:0" [shape=box, label="1/cuda:0", fillcolor="#fce5cd"];
  }
  t0 [shape=ellipse, label="image\nf32[8, 3]", fillcolor="#cfe2f3"];
  t7 [shape=ellipse, label="f32[8, 5]", fillcolor="#fce5cd"];
  t8 [shape=ellipse, label="f32[]", fillcolor="#fce5cd"];
  o3 [shape=box, label="to_gpu\ncopy", fillcolor="#fce5cd"];
  o4 [shape=box, label="loss\nmean", fillcolor="#fce5cd"];
  subgraph "cluster_net" {
    label="net";
    t1 [shape=ellipse, peripheries=2, label="weight\nf32[5, 3]", fillcolor="#cfe2f3"];
    t2 [shape=ellipse, peripheries=2, label="mean\nf64[5]", fillcolor="#cfe2f3"];
    t3 [shape=ellipse, label="f32[8, 5]", fillcolor="#cfe2f3"];
    t4 [shape=ellipse, label="f32[8, 2]", fillcolor="#cfe2f3"];
    t5 [shape=ellipse, label="f32[8, 3]", fillcolor="#cfe2f3"];
    t6 [shape=ellipse, label="f32[5, 3]", fillcolor="#cfe2f3"];
    o0 [shape=box, label="linear", fillcolor="#cfe2f3"];
    o1 [shape=box, label="split\naxis=1", fillcolor="#cfe2f3"];
    o2 [shape=box, label="update", fillcolor="#cfe2f3"];
  }
  t0 -> o0;
  t1 -> o0;
  o0 -> t3;
  t3 -> o1;
  o1 -> t4;
  o1 -> t5;
  t1 -> o2;
  t5 -> o2;
  o2 -> t6;
  t3 -> o3;
  o3 -> t7;
  t7 -> o4;
  o4 -> t8;
  t6 -> t1 [style=dashed, constraint=false];
}
)");
}

TEST_F(DumpTest, DotFoldsWhatThereIsNoRoomFor) {
  const std::string folded = dot(graph_, DotOptions{.most_vertices = 8});
  EXPECT_NE(folded.find("  s0 [shape=box, style=\"rounded,filled\", penwidth=2, label=\"net\\n3 operators\", "
                        "fillcolor=\"#cfe2f3\"];\n"),
            std::string::npos)
      << folded;
  EXPECT_EQ(folded.find("cluster_net"), std::string::npos);
  EXPECT_NE(folded.find("  t0 -> s0;\n"), std::string::npos) << folded;
  EXPECT_NE(folded.find("  s0 -> o3 [fontname=\"Helvetica\", fontsize=10, label=\"f32[8, 5]\"];\n"),
            std::string::npos)
      << folded;
  EXPECT_EQ(dot(graph_, DotOptions{.most_vertices = 100}), dot(graph_)) << "there is room for all";
}

TEST(DotTest, OpensTheLargestScopesFirst) {
  Graph graph;
  Tensor value = graph.input("input", {{4}, DType::f32});
  for (int block = 0; block < 3; ++block) {
    const auto scope = graph.scope("block" + std::to_string(block));
    for (int i = 0; i <= block; ++i) value = graph.add(simple("relu", {{{4}, DType::f32}}), {value}).output();
  }
  // Input, block2's three operators and tensors, and two boxes.
  const std::string text = dot(graph, DotOptions{.most_vertices = 9});
  EXPECT_NE(text.find("cluster_block2"), std::string::npos) << text;
  EXPECT_NE(text.find("label=\"block1\\n2 operators\""), std::string::npos) << text;
  EXPECT_NE(text.find("label=\"block0\\n1 operator\""), std::string::npos) << text;
  EXPECT_NE(text.find("s0 -> s1 [fontname=\"Helvetica\", fontsize=10, label=\"f32[4]\"];"), std::string::npos)
      << text;
  EXPECT_EQ(dot(graph, DotOptions{.most_vertices = 1}).find("cluster"), std::string::npos)
      << "all are folded";
}

}  // namespace
}  // namespace purine
