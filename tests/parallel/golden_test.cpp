// The text of divided graphs, compared with golden files, which PURINE_UPDATE_GOLDEN=1 writes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>

#include "purine/models/lenet.h"
#include "purine/nn/layers.h"
#include "purine/ops/concat.h"
#include "purine/ops/loss.h"
#include "purine/ops/pooling.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/pipeline.h"
#include "purine/parallel/schemes.h"
#include "purine/session/runtime.h"

namespace purine::parallel {
namespace {

using Scheme = std::function<Partitioned(Graph&)>;

/// True for an operator that looks as another one that is shown does: one of the first location, or of a
/// further micro-batch.
bool is_like_another(const std::string& line) {
  if (line.starts_with("@0/")) return true;
  const auto dot = line.find('.');
  return line.starts_with('@') && dot < line.find('/') && line[dot + 1] != '0';
}

void expect_golden(const std::string& name, Graph& graph, const Scheme& scheme) {
  Partitioned parts = scheme(graph);
  verify(parts.graph());
  const std::string path = "tests/parallel/golden/" + name + ".txt";
  std::string text;
  std::istringstream lines(dump(parts.graph()));
  for (std::string line; std::getline(lines, line);) {
    if (!is_like_another(line)) text += line + "\n";
  }
  if (std::getenv("PURINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file.is_open()) << path;
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str());
}

/// LeNet with momentum.
void expect_golden_lenet(const std::string& name, const Scheme& scheme) {
  Graph graph;
  const Tensor image = graph.input("image", {{5, 1, 28, 28}, DType::f32});
  const Tensor label = graph.input("label", {{5}, DType::u8});
  optim::momentum(ops::softmax_cross_entropy(models::lenet(image, 10), label, "loss"));
  expect_golden("lenet_" + name, graph, scheme);
}

/// GoogLeNet's first inception block with few channels and no biases, and a fully connected layer, with plain
/// descent.
void expect_golden_inception(const std::string& name, const Scheme& scheme) {
  Graph graph;
  const Tensor x = graph.input("image", {{3, 4, 6, 6}, DType::f32});
  const Tensor label = graph.input("label", {{3}, DType::u8});
  const auto convolution = [](Tensor from, std::int64_t channels, std::int64_t kernel, const char* scope) {
    const nn::Conv2dOptions options{.padding = (kernel - 1) / 2, .has_bias = false};
    return ops::relu(nn::conv2d(from, channels, kernel, options, scope));
  };
  Tensor y;
  {
    const auto scope = graph.scope("inception_3a");
    const Tensor pool =
        ops::max_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}}, "pool");
    y = ops::concat(
        {convolution(x, 4, 1, "conv_1x1"), convolution(convolution(x, 3, 1, "reduce_3x3"), 6, 3, "conv_3x3"),
         convolution(convolution(x, 1, 1, "reduce_5x5"), 2, 5, "conv_5x5"),
         convolution(pool, 2, 1, "pool_projection")},
        1);
  }
  optim::sgd(ops::softmax_cross_entropy(nn::linear(ops::flatten(y), 5, {}, "fc"), label, "loss"));
  expect_golden("inception_" + name, graph, scheme);
}

struct GoldenScheme {
  const char* name;
  Scheme scheme;

  friend std::ostream& operator<<(std::ostream& out, const GoldenScheme& golden) {
    return out << golden.name;
  }
};

Mesh two(const char* axis) {
  return Mesh(parse_devices("emu:0-1"), axis);
}

const std::vector<GoldenScheme>& cases() {
  static const std::vector<GoldenScheme> all = {
      {"data", [](Graph& g) { return data_parallel(g, two("data")); }},
      {"data_one_each",
       [](Graph& g) { return data_parallel(g, two("data"), {.update = UpdateAt::one_each}); }},
      {"data_shards", [](Graph& g) { return data_parallel(g, two("data"), {.update = UpdateAt::shards}); }},
      {"tensor", [](Graph& g) { return tensor_parallel(g, two("model")); }},
      {"hybrid", [](Graph& g) { return hybrid(g, two("data")); }},
      {"pipeline", [](Graph& g) { return pipeline(g, two("stage"), {.micro_batches = 3}); }},
      {"data_pipeline",
       [](Graph& g) {
         return pipeline(g, Mesh("data=2,stage=2", parse_devices("emu:0-3")), {.micro_batches = 2});
       }},
  };
  return all;
}

class GoldenTest : public testing::TestWithParam<GoldenScheme> {};

TEST_P(GoldenTest, LeNet) {
  expect_golden_lenet(GetParam().name, GetParam().scheme);
}

TEST_P(GoldenTest, InceptionBlock) {
  expect_golden_inception(GetParam().name, GetParam().scheme);
}

INSTANTIATE_TEST_SUITE_P(Schemes, GoldenTest, testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace purine::parallel
