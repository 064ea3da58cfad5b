#include "purine/models/models.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "purine/graph/transform.h"
#include "purine/optim/optimizers.h"
#include "tests/support/error_text.h"

namespace purine::models {
namespace {

using test::error_text;

Tensor input_of(Graph& graph, const Model& model, std::int64_t samples) {
  return graph.input("image", {{samples, model.image[0], model.image[1], model.image[2]}, DType::f32});
}

std::int64_t parameters(Graph& graph) {
  std::int64_t count = 0;
  for (const Variable variable : graph.variables()) {
    if (variable.trainable()) count += variable.shape().elements();
  }
  return count;
}

/// The whole training graph: loss, gradients, updates.
void build_training(Graph& graph, const Model& model, std::int64_t samples) {
  const Tensor image = input_of(graph, model, samples);
  const Tensor label = graph.input("label", {{samples}, DType::i64});
  const Network network = model.build(image, model.classes, nn::Mode::training);
  optim::momentum(classification_loss(network, label), {.clip_norm = 1});
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Model& model : all_models()) names.emplace_back(model.name);
  return names;
}

class ModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  const Model& model() const { return find_model(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, ModelTest, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// Published counts of trainable parameters, for the published images and classes; that of small_convnet is
// ours.
TEST_P(ModelTest, HasThePublishedNumberOfParameters) {
  const std::map<std::string_view, std::int64_t> published = {
      {"alexnet", 61'100'840},     {"alexnet_grouped", 60'965'224},
      {"googlenet", 6'998'552},    {"googlenet_auxiliary", 13'378'280},
      {"googlenet_bn", 6'624'904}, {"googlenet_bn_auxiliary", 13'004'888},
      {"lenet", 431'080},          {"network_in_network", 966'986},
      {"resnet18", 11'689'512},    {"resnet50", 25'557'032},
      {"small_convnet", 426'234},  {"vgg16", 138'357'544},
  };
  Graph graph;
  build(GetParam(), input_of(graph, model(), 1), model().classes);
  EXPECT_EQ(parameters(graph), published.at(GetParam()));
}

TEST_P(ModelTest, GivesLogitsForEverySample) {
  Graph graph;
  const Network network = build(GetParam(), input_of(graph, model(), 3), 17);
  EXPECT_EQ(network.logits.info(), (TensorInfo{{3, 17}, DType::f32}));
  for (const AuxiliaryHead& head : network.auxiliary) {
    EXPECT_EQ(head.logits.info(), network.logits.info());
    EXPECT_EQ(head.weight, 0.3);
  }
  verify(graph);
}

TEST_P(ModelTest, VariablesAreTheSameInBothModes) {
  Graph training;
  build(GetParam(), input_of(training, model(), 2), 10, nn::Mode::training);
  Graph inference;
  const Network network = build(GetParam(), input_of(inference, model(), 5), 10, nn::Mode::inference);
  verify(inference);
  EXPECT_TRUE(network.auxiliary.empty());
  const std::vector<Variable> expected = training.variables();
  const std::vector<Variable> got = inference.variables();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].path(), expected[i].path());
    EXPECT_EQ(got[i].info(), expected[i].info());
    EXPECT_EQ(got[i].path().substr(0, got[i].path().find('/')),
              network.logits.path().substr(0, network.logits.path().find('/')));
    EXPECT_FALSE(got[i].has_next());
  }
}

TEST_P(ModelTest, TrainsAndIsTheSameGraphForAnotherBatchSize) {
  Graph graph;
  build_training(graph, model(), 4);
  verify(graph);
  for (const Variable variable : graph.variables()) EXPECT_TRUE(variable.has_next()) << variable.path();
  Graph expected;
  build_training(expected, model(), 3);
  Graph got;
  with_batch_size(graph, 3, got);
  verify(got);
  EXPECT_EQ(dump(got), dump(expected));
}

TEST(ModelsTest, GoogLeNetHasTwoHeadsInTraining) {
  for (const char* name : {"googlenet_auxiliary", "googlenet_bn_auxiliary"}) {
    Graph graph;
    const Network network = build(name, input_of(graph, find_model(name), 2), 10);
    ASSERT_EQ(network.auxiliary.size(), 2U);
    const Tensor loss = classification_loss(network, graph.input("label", {{2}, DType::i64}));
    EXPECT_EQ(loss.info(), (TensorInfo{{}, DType::f32}));
    EXPECT_EQ(loss.producer().type(), "sum_n");
    EXPECT_EQ(loss.producer().input_count(), 3);
  }
}

TEST(ModelsTest, NamesAreSortedAndFound) {
  std::string_view last;
  for (const Model& model : all_models()) {
    EXPECT_LT(last, model.name);
    last = model.name;
    EXPECT_EQ(find_model(model.name).summary, model.summary);
    EXPECT_FALSE(model.summary.empty());
  }
  EXPECT_EQ(error_text([] { find_model("lenet5"); }),
            "[models] there is no model 'lenet5'; hint: did you mean 'lenet'?");
  EXPECT_EQ(error_text([] { find_model("transformer"); }),
            "[models] there is no model 'transformer'; hint: models are alexnet, alexnet_grouped, googlenet, "
            "googlenet_auxiliary, googlenet_bn, googlenet_bn_auxiliary, lenet, network_in_network, resnet18, "
            "resnet50, small_convnet, vgg16");
}

TEST(ModelsTest, AnImageThatIsTooSmallIsAnErrorThatNamesTheLayer) {
  Graph graph;
  const Tensor image = graph.input("image", {{2, 1, 12, 12}, DType::f32});
  EXPECT_NE(error_text([&] { build("lenet", image, 10); }).find("lenet/"), std::string::npos);
}

TEST(ModelsTest, LeNetsTrainingGraphIsTheGoldenOne) {
  Graph graph;
  build_training(graph, find_model("lenet"), 64);
  // PURINE_UPDATE_GOLDEN=1 writes the file anew, to be looked at before it is committed.
  const char* path = "tests/models/golden/lenet_training.txt";
  if (std::getenv("PURINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << dump(graph);
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(dump(graph), golden.str());
}

}  // namespace
}  // namespace purine::models
