#include "purine/session/memory_fit.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/data/memory_dataset.h"
#include "purine/data/source.h"
#include "purine/gradient/recompute.h"
#include "purine/models/models.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/relu.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"
#include "tests/support/error_text.h"

namespace purine {
namespace {

/// Images with a bright block at one of ten places each, which is the label.
data::DatasetPtr grey_images(data::ImageSize size, std::int64_t samples) {
  data::internal::MemoryImages images;
  images.size = size;
  const std::int64_t pixels = size.channels * size.height * size.width;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t label = i % 10;
    images.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t k = 0; k < pixels; ++k) {
      const bool bright = k * 10 / pixels == label;
      images.pixels.push_back(static_cast<std::uint8_t>(bright ? 200 + i % 40 : i * 7 % 60));
    }
  }
  images.class_names = data::internal::numbered_classes(10);
  images.files = {"blocks"};
  images.file_ends = {samples};
  return data::internal::make_memory_dataset(std::move(images));
}

/// A model's training on images of a set, or of `samples` 0 on a random batch.
struct Training {
  Graph graph;
  Tensor loss;

  Training(std::string_view model, data::ImageSize image, std::int64_t batch, std::int64_t samples = 0,
           double dropout = 0) {
    const data::Batch images =
        samples > 0 ? data::source(graph, grey_images(image, samples), {.batch = batch})
                    : data::synthetic(graph, {.batch = batch, .image = image, .classes = 10, .seed = 3});
    Tensor x = models::build(model, images.image, 10).logits;
    if (dropout > 0) x = nn::linear(ops::relu(nn::dropout(x, dropout, nn::Mode::training)), 10);
    loss = ops::softmax_cross_entropy(x, images.label);
    optim::momentum(loss, {.learning_rate = 0.05, .momentum = 0.9});
    graph.watch(loss);
  }
};

/// What some steps of a graph give: losses, and bytes of the variables by path.
struct FiveSteps {
  std::vector<double> losses;
  std::map<std::string, std::vector<std::byte>> variables;

  FiveSteps(Graph& graph, Tensor loss, int workers, bool poison_freed) {
    Runtime runtime({.workers = workers});
    Session session(runtime, graph, {.poison_freed = poison_freed});
    for (const Step& step : session.run({.steps = 5})) losses.push_back(step.value(loss));
    for (const auto& [path, entry] : session.variables().entries()) {
      variables[path].assign(entry.bytes().begin(), entry.bytes().end());
    }
  }
};

/// Trains a graph and the one that was made of it, with several numbers of workers.
void expect_the_same(Training& training, Graph& made, Tensor loss) {
  verify(made);
  const FiveSteps before(training.graph, training.loss, 2, false);
  for (const int workers : {1, 2, 4}) {
    const FiveSteps after(made, loss, workers, workers == 4);
    EXPECT_EQ(after.losses, before.losses) << workers;
    EXPECT_EQ(after.variables, before.variables) << workers;
  }
}

void expect_the_same_with(Training& training, const std::vector<std::string>& operators) {
  Graph made;
  const std::vector<Tensor> tensors = recompute(training.graph, operators, made);
  expect_the_same(training, made, tensors[training.loss.index()]);
}

/// All that is cheap to compute is computed again.
void expect_the_same_with_all_again(Training& training) {
  std::vector<std::string> all;
  for (const Recomputation& way : recomputations(training.graph)) {
    for (const Operator op : way.operators) all.push_back(op.path());
  }
  ASSERT_FALSE(all.empty());
  expect_the_same_with(training, all);
}

TEST(MemoryFitTest, LenetTrainsTheSameWithTheWholeNetworkAgain) {
  Training training("lenet", {1, 28, 28}, 32, 100);
  std::vector<std::string> network;
  for (std::uint32_t i = 0; i < training.graph.operator_count(); ++i) {
    std::string path = training.graph.op(i).path();
    if (path.starts_with("lenet/")) network.push_back(std::move(path));
  }
  ASSERT_EQ(network.size(), 8U);
  expect_the_same_with(training, network);
}

TEST(MemoryFitTest, NormalisationAndDropoutComputeTheSameAgain) {
  Training training("small_convnet", {1, 28, 28}, 16, 40, 0.5);
  expect_the_same_with_all_again(training);
}

TEST(MemoryFitTest, BranchesComputeTheSameAgain) {
  Training training("googlenet_bn", {3, 32, 32}, 4);
  expect_the_same_with_all_again(training);
}

TEST(MemoryFitTest, ResidualBlocksComputeTheSameAgain) {
  Training training("resnet18", {3, 32, 32}, 4);
  expect_the_same_with_all_again(training);
}

TEST(MemoryFitTest, FitsWhatASessionPlansAndTrainsTheSame) {
  Training training("small_convnet", {1, 28, 28}, 64);
  Runtime runtime({.workers = 2});
  const std::size_t before = Session(runtime, training.graph).peak_bytes();
  MemoryFit fit = fit_memory(runtime, training.graph, before - before / 5);
  ASSERT_NE(fit.graph, nullptr);
  EXPECT_FALSE(fit.operators.empty());
  EXPECT_EQ(fit.bytes_before, before);
  EXPECT_LE(fit.bytes, before - before / 5);
  EXPECT_EQ(Session(runtime, *fit.graph, {.storage_distance = fit.storage_distance}).peak_bytes(), fit.bytes);
  expect_the_same(training, *fit.graph, fit.tensors[training.loss.index()]);
}

/// Fits a step into what it needs without a limit, less one part of so many.
MemoryFit fit_without_one_part(Training& training, std::size_t parts) {
  Runtime runtime({.workers = 2});
  const std::size_t before = fit_memory(runtime, training.graph, std::size_t{1} << 40U).bytes;
  MemoryFit fit = fit_memory(runtime, training.graph, before - before / parts);
  EXPECT_NE(fit.graph, nullptr);
  EXPECT_LE(fit.bytes, before - before / parts);
  return fit;
}

TEST(MemoryFitTest, GooglenetKeepsLess) {
  Training training("googlenet", {3, 112, 112}, 4);
  fit_without_one_part(training, 20);
}

/// What is computed again to no avail while storage is reused late would be in the way here.
TEST(MemoryFitTest, GooglenetKeepsMuchLessWhereStorageIsReusedSooner) {
  Training training("googlenet", {3, 224, 224}, 32);
  EXPECT_LT(fit_without_one_part(training, 4).storage_distance, SessionOptions().storage_distance);
}

TEST(MemoryFitTest, ALimitThatHoldsChangesNothing) {
  Training training("lenet", {1, 28, 28}, 8);
  Runtime runtime({.workers = 2});
  const MemoryFit fit = fit_memory(runtime, training.graph, std::size_t{1} << 40U);
  EXPECT_EQ(fit.graph, nullptr);
  EXPECT_TRUE(fit.operators.empty());
  EXPECT_EQ(fit.bytes, fit.bytes_before);
}

/// What is said of a limit that nothing can hold.
std::string refusal(Graph& graph) {
  Runtime runtime({.workers = 1});
  return test::error_text([&] { fit_memory(runtime, graph, 1); });
}

TEST(MemoryFitTest, ALimitThatCannotHoldNamesTheLeast) {
  Training training("lenet", {1, 28, 28}, 8);
  const std::string text = refusal(training.graph);
  EXPECT_TRUE(text.starts_with("[memory] a step needs ")) << text;
  EXPECT_NE(
      text.find(" MB where storage is reused sooner; the limit is 0.0 MB; hint: raise the limit, or take "
                "a smaller batch"),
      std::string::npos)
      << text;
}

TEST(MemoryFitTest, ALimitThatCannotHoldSaysWhereNothingHelps) {
  Graph graph;
  const data::Batch images = data::synthetic(graph, {.batch = 8, .image = {1, 28, 28}, .classes = 10});
  optim::sgd(ops::softmax_cross_entropy(nn::linear(ops::flatten(images.image), 10), images.label));
  const std::string text = refusal(graph);
  EXPECT_NE(text.find(" MB, and no less where activations are computed again instead of being kept; the "
                      "limit is 0.0 MB; hint: raise the limit, or take a smaller batch"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace purine
