#include "purine/parallel/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "purine/core/random.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::error_text;
using Sizes = std::vector<int>;

TEST(StagesTest, EqualItemsAreEvenAndTheFirstStagesTheLarger) {
  EXPECT_EQ(divide_into_stages(std::vector<double>(30, 1.0), 4), (Sizes{8, 8, 7, 7}));
  EXPECT_EQ(divide_into_stages(std::vector<double>(30, 0.1), 4), (Sizes{8, 8, 7, 7}));
  EXPECT_EQ(divide_into_stages(std::vector<double>(5, 2.0), 3), (Sizes{2, 2, 1}));
  EXPECT_EQ(divide_into_stages(std::vector<double>(4, 1.0), 4), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(divide_into_stages(std::vector<double>(7, 1.0), 1), (Sizes{7}));
}

TEST(StagesTest, TheCostliestStageIsTheLeast) {
  EXPECT_EQ(divide_into_stages(std::vector<double>{1, 1, 1, 9}, 2), (Sizes{3, 1}));
  EXPECT_EQ(divide_into_stages(std::vector<double>{9, 1, 1, 1}, 3), (Sizes{1, 2, 1}));
  EXPECT_EQ(divide_into_stages(std::vector<double>{2, 3, 5, 7, 1}, 3), (Sizes{2, 1, 2}));
  // What costs nothing goes with what is before it.
  EXPECT_EQ(divide_into_stages(std::vector<double>{1, 0, 1, 0}, 2), (Sizes{2, 2}));
  EXPECT_EQ(divide_into_stages(std::vector<double>{0, 0, 0}, 2), (Sizes{2, 1}));
}

TEST(StagesTest, SharesSayHowMuchEachStageHas) {
  const std::vector<double> equal(30, 1.0);
  EXPECT_EQ(divide_into_stages(equal, 2, std::vector<double>{2, 1}), (Sizes{20, 10}));
  EXPECT_EQ(divide_into_stages(equal, 2, std::vector<double>{1, 2}), (Sizes{10, 20}));
  EXPECT_EQ(divide_into_stages(equal, 3, std::vector<double>{0.1, 0.4, 0.1}), (Sizes{5, 20, 5}));
  // A share that is too small for anything gets one item.
  EXPECT_EQ(divide_into_stages(equal, 2, std::vector<double>{1e-6, 1}), (Sizes{1, 29}));
  EXPECT_EQ(error_text([&] { divide_into_stages(equal, 2, std::vector<double>{1}); }),
            "[pipeline] 2 stages need as many positive shares of the work, got [1]");
  EXPECT_EQ(error_text([&] {
              divide_into_stages(equal, 2, std::vector<double>{1, -2});
            }),
            "[pipeline] 2 stages need as many positive shares of the work, got [1, -2]");
}

/// The best of all cuts: the costliest stage, the sum of squares, and then the sizes in reverse.
Sizes best_of_all(const std::vector<double>& costs, int stages) {
  using Score = std::tuple<double, double, Sizes>;
  std::optional<Score> best;
  Sizes result;
  Sizes sizes(static_cast<std::size_t>(stages), 1);
  const auto items = static_cast<int>(costs.size());
  const auto judge = [&] {
    if (std::accumulate(sizes.begin(), sizes.end(), 0) != items) return;
    double largest = 0;
    double squares = 0;
    auto begin = costs.begin();
    Sizes order;
    for (const int size : sizes) {
      const double cost = std::accumulate(begin, begin + size, 0.0);
      largest = std::max(largest, cost);
      squares += cost * cost;
      begin += size;
      order.push_back(-size);
    }
    const Score score{largest, squares, order};
    if (best && !(score < *best)) return;
    best = score;
    result = sizes;
  };
  while (true) {
    judge();
    std::size_t digit = 0;
    while (digit < sizes.size() && ++sizes[digit] > items) sizes[digit++] = 1;
    if (digit == sizes.size()) return result;
  }
}

TEST(StagesTest, EqualsTheBestOfAllCuts) {
  const Random random(11, 1, 0);
  std::uint64_t next = 0;
  for (int round = 0; round < 300; ++round) {
    const auto stages = static_cast<int>(1 + random.below(next++, 4));
    const std::size_t items = static_cast<std::size_t>(stages) + random.below(next++, 5);
    std::vector<double> costs;
    // Whole numbers, so that sums are exact and ties are many.
    for (std::size_t i = 0; i < items; ++i) costs.push_back(static_cast<double>(random.below(next++, 5)));
    EXPECT_EQ(divide_into_stages(costs, stages), best_of_all(costs, stages)) << testing::PrintToString(costs);
  }
}

TEST(StagesTest, SayWhatCannotBeCut) {
  EXPECT_EQ(error_text([] {
              divide_into_stages(std::vector<double>{1, 2}, 3);
            }),
            "[pipeline] 2 operators can't be cut into 3 stages; hint: take fewer stages, or divide the "
            "samples along a second axis: data=2,stage=4");
  EXPECT_EQ(error_text([] {
              divide_into_stages(std::vector<double>{1, 2}, 0);
            }),
            "[pipeline] 0 stages were asked for, at least 1 is needed");
  EXPECT_EQ(error_text([] {
              divide_into_stages(std::vector<double>{1, -2}, 1);
            }),
            "[pipeline] an operator's cost is -2, a number from 0 on is needed");
  EXPECT_EQ(error_text([] { divide_into_stages(std::vector<double>{NAN}, 1); }),
            "[pipeline] an operator's cost is nan, a number from 0 on is needed");
}

TEST(StagesTest, TellPhasesAndPlacesByWhatIsComputed) {
  Graph graph;
  Tensor x = graph.input("x", {{4, 2, 6, 6}, DType::f32});
  const Tensor label = graph.input("label", {{4}, DType::i64});
  x = ops::relu(nn::conv2d(x, 3, 3, {}, "first"));
  x = ops::relu(nn::conv2d(x, 3, 3, {}, "second"));
  const Tensor loss = ops::softmax_cross_entropy(nn::linear(ops::flatten(x), 5, {}, "third"), label, "loss");
  optim::momentum(loss, {.clip_norm = 1});
  const auto cost = [](Operator op) {
    return op.path() == "first/conv2d" || op.path() == "second/conv2d" || op.path() == "third/linear" ? 1.0
                                                                                                      : 0.0;
  };
  const Stages stages = assign_stages(graph, 3, cost);
  const auto check = [&](std::string_view path, Phase phase, int stage) {
    for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
      if (graph.op(i).path() != path) continue;
      EXPECT_EQ(stages.phases[i], phase) << path;
      EXPECT_EQ(stages.operators[i], stage) << path;
      return;
    }
    ADD_FAILURE() << "there is no " << path;
  };
  check("first/conv2d", Phase::forward, 0);
  check("relu", Phase::forward, 0);
  check("second/conv2d", Phase::forward, 1);
  check("flatten", Phase::forward, 1);
  check("loss", Phase::forward, 2);
  check("gradient/softmax_cross_entropy_gradient", Phase::backward, 2);
  check("gradient/third/matmul", Phase::backward, 2);
  check("gradient/third/matmul_2", Phase::weight_gradient, 2);
  check("gradient/third/sum", Phase::weight_gradient, 2);
  check("gradient/relu_gradient", Phase::backward, 1);
  check("gradient/second/conv2d_input_gradient", Phase::backward, 1);
  // Of weight and bias.
  check("gradient/second/conv2d_weight_gradient", Phase::weight_gradient, 1);
  // The first stage has nothing else to do when its gradient arrives.
  check("gradient/relu_gradient_2", Phase::backward, 0);
  check("gradient/first/conv2d_weight_gradient", Phase::backward, 0);
  for (const char* layer : {"first", "second", "third"}) {
    const int stage = layer[0] == 'f' ? 0 : layer[0] == 's' ? 1 : 2;
    for (const char* name : {"/weight", "/bias"}) {
      const std::string path = std::string(layer) + name;
      check("optimizer/" + path + "/momentum_update", Phase::update, stage);
      EXPECT_EQ(stages.variables[graph.find_variable(path).index()], stage);
      EXPECT_EQ(stages.variables[graph.find_variable("optimizer/" + path + "/momentum").index()], stage);
    }
  }
}

}  // namespace
}  // namespace purine::parallel
