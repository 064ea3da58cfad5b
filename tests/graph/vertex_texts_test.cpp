#include "purine/graph/vertex_texts.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/mix_operator.h"

namespace purine {
namespace {

using test::Mix;
using test::mix;

struct Options {
  std::int64_t input_extent = 3;
  DType dtype = DType::i64;
  std::int64_t initial_salt = 1;
  bool trainable = true;
  std::int64_t salt = 2;
  std::string_view name = "mix";
  bool swapped = false;
  std::int32_t rank = 0;
  bool has_next = true;
};

void build(Graph& graph, const Options& options) {
  const Tensor x = graph.input("x", {{options.input_extent}, options.dtype});
  const auto initial = std::make_shared<Mix>(Mix::Options{.salt = options.initial_salt});
  const Variable v = graph.variable("v", {{1}, DType::i64}, initial, {.trainable = options.trainable});
  const std::vector<Tensor> inputs = options.swapped ? std::vector<Tensor>{v, x} : std::vector<Tensor>{x, v};
  const auto operation = std::make_shared<Mix>(Mix::Options{.salt = options.salt});
  const Tensor y = graph.add(operation, inputs, options.name).output();
  if (options.has_next) graph.set_next(v, y);
  const auto placement = graph.at({options.rank, DeviceKind::cpu, 0});
  graph.watch(mix(graph, {}, {}).output());
}

TEST(VertexTextsTest, AreTheLinesOfTheDump) {
  Graph graph;
  build(graph, {});
  const VertexTexts vertices(graph);
  ASSERT_EQ(vertices.size(), 5U);
  std::string text;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    text += vertices.text(i) + "\n";
    paths.push_back(vertices.path(i));
  }
  EXPECT_EQ(text, dump(graph));
  EXPECT_EQ(paths, (std::vector<std::string>{"x", "v", "mix", "mix_2", "mix_2"}));
}

TEST(VertexTextsTest, HashesDifferWhereTheTextsDo) {
  const std::vector<Options> all = {
      {},          {.input_extent = 4}, {.dtype = DType::f32}, {.initial_salt = 9}, {.trainable = false},
      {.salt = 9}, {.name = "other"},   {.swapped = true},     {.rank = 1},         {.has_next = false}};
  Graph first;
  build(first, {});
  const VertexTexts expected(first);
  const std::vector<std::uint64_t> expected_hashes = expected.hashes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE("options " + std::to_string(i));
    Graph graph;
    build(graph, all[i]);
    const VertexTexts vertices(graph);
    const std::vector<std::uint64_t> hashes = vertices.hashes();
    std::set<std::size_t> by_text;
    std::set<std::size_t> by_hash;
    for (std::size_t k = 0; k < 4; ++k) {
      if (vertices.text(k) != expected.text(k)) by_text.insert(k);
      if (hashes[k] != expected_hashes[k]) by_hash.insert(k);
    }
    // The text of a variable names its next value, the hash has its number.
    if (all[i].name == "other") by_text.erase(1);
    EXPECT_EQ(by_hash, by_text);
    EXPECT_EQ(by_hash.empty(), i == 0);
  }
}

}  // namespace
}  // namespace purine
