#include "purine/train/graph_identity.h"

#include <gtest/gtest.h>

#include "purine/train/network.h"

namespace purine::train {
namespace {

GraphIdentity identity_of(const char* optimizer, Location device, std::int64_t classes = 10) {
  Graph graph;
  const data::Batch batch = data::synthetic(graph, {.batch = 4, .image = {1, 28, 28}, .classes = 10});
  Job job;
  job.model.name = "lenet";
  job.optimizer.name = optimizer;
  build_training(batch, job, classes, 5, device);
  return identify(graph);
}

TEST(GraphIdentityTest, DoesNotDependOnWhereThingsLie) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    const GraphIdentity here = identity_of(optimizer, {});
    EXPECT_EQ(here, identity_of(optimizer, {0, DeviceKind::emu, 0})) << optimizer;
    EXPECT_EQ(here, identity_of(optimizer, {3, DeviceKind::emu, 2})) << optimizer;
    EXPECT_FALSE(here.parts.contains("copy"));
  }
}

TEST(GraphIdentityTest, DependsOnWhatIsComputed) {
  const GraphIdentity sgd = identity_of("sgd", {});
  const GraphIdentity momentum = identity_of("momentum", {});
  EXPECT_NE(sgd.hash, momentum.hash);
  EXPECT_EQ(difference(sgd, momentum), "it has 0 momentum_update operators, now there are 8");
  EXPECT_NE(identity_of("sgd", {}, 11).hash, sgd.hash);
}

TEST(GraphIdentityTest, ADifferenceSaysWhere) {
  GraphIdentity before;
  before.parts = {{"conv2d", {3, 1}}, {"variables", {8, 5}}};
  GraphIdentity now = before;
  now.parts["conv2d"] = {4, 2};
  EXPECT_EQ(difference(before, now), "it has 3 conv2d operators, now there are 4");
  EXPECT_EQ(difference(now, before), "it has 4 conv2d operators, now there are 3");
  now.parts["conv2d"] = {3, 2};
  EXPECT_EQ(difference(before, now), "the names or settings of its 3 conv2d operators differ");
  now = before;
  now.parts["variables"] = {9, 6};
  EXPECT_EQ(difference(before, now), "it has 8 variables, now there are 9");
}

}  // namespace
}  // namespace purine::train
