#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/gradient/gradient.h"
#include "purine/ops/binary.h"
#include "purine/ops/constant.h"
#include "purine/ops/convolution.h"
#include "purine/ops/matmul.h"
#include "purine/ops/pooling.h"
#include "purine/ops/reduce.h"
#include "purine/ops/relu.h"
#include "purine/ops/reorder.h"
#include "purine/ops/reshape.h"
#include "purine/program/lowered.h"

namespace purine::program {
namespace {

struct Network {
  Graph graph;
  std::vector<Tensor> weights;
  Tensor image = graph.input("image", {{4, 3, 12, 12}, DType::f32});

  Tensor convolve(Tensor x, std::int64_t channels, const std::string& name) {
    const TensorInfo info{{channels, x.shape()[1], 3, 3}, DType::f32};
    weights.push_back(graph.variable(name + "_weight", info, ops::make_constant(info, 0.1)));
    return ops::conv2d(x, weights.back(), {}, {.padding = {1, 1, 1, 1}}, name);
  }
};

/// The paths of the reorders that layouts needed, in the order that they run in.
std::vector<std::string> reorders(Graph& graph) {
  Lowered lowered = lower(WholeGraph(graph));
  assign_layouts(graph, lowered, true);
  std::vector<std::string> paths;
  for (const LoweredOperator& op : lowered.operators) {
    if (dynamic_cast<const ops::Reorder*>(op.contract.get()) != nullptr) paths.push_back(op.added_path);
  }
  return paths;
}

TEST(LayoutTest, ValuesBetweenConvolutionsStayInChannelsLast) {
  Network network;
  Tensor x = network.convolve(network.image, 8, "first");
  x = ops::max_pool2d(ops::relu(x), {}, "pool");
  network.graph.watch(network.convolve(x, 6, "second"));
  EXPECT_EQ(reorders(network.graph), (std::vector<std::string>{"image/to_channels_last", "second/to_plain"}));
}

TEST(LayoutTest, GradientThatAConvolutionReadsIsMadeInChannelsLast) {
  Network network;
  Tensor x = network.convolve(network.image, 8, "first");
  x = ops::flatten(ops::max_pool2d(x, {}, "pool"));
  const Tensor loss = ops::mean(ops::multiply(x, x));
  for (const Tensor gradient : gradients(loss, network.weights)) network.graph.watch(gradient);
  // What is flattened is plain, and so its gradient; in channels last that is brought where it is smallest,
  // before it is spread over the windows.
  EXPECT_EQ(reorders(network.graph), (std::vector<std::string>{"image/to_channels_last", "pool/to_plain",
                                                               "gradient/reshape/to_channels_last"}));
}

}  // namespace
}  // namespace purine::program
