#include "purine/train/dispatcher_meter.h"

#include <gtest/gtest.h>

#include "purine/data/source.h"
#include "purine/models/models.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"

namespace purine {
namespace {

void build_training(Graph& graph, Location device) {
  const auto place = graph.at(device);
  const data::Batch images = data::synthetic(graph, {.batch = 8, .image = {1, 28, 28}, .classes = 10});
  const Tensor logits = models::lenet(images.image, 10);
  optim::momentum(ops::softmax_cross_entropy(logits, images.label), {.learning_rate = 0.05});
}

TEST(DispatcherMeterTest, MeasuresAProgramAndLeavesItsVariablesAlone) {
  Graph graph;
  build_training(graph, {});
  for (const int workers : {1, 2, 4}) {
    Runtime runtime({.workers = workers});
    Session session(runtime, graph);
    session.run_steps(1);
    const std::vector<io::HostTensor> before = session.variables().values();
    const std::optional<double> seconds = train::dispatcher_seconds(session.program(), runtime);
    ASSERT_TRUE(seconds.has_value());
    EXPECT_GT(*seconds, 0);
    const std::vector<io::HostTensor> after = session.variables().values();
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i].data, before[i].data);
    session.run_steps(1);  // it can go on
    EXPECT_EQ(session.iteration(), 2);
  }
}

TEST(DispatcherMeterTest, ProgramsOfOtherDevicesAreNotMeasured) {
  const Location device{0, DeviceKind::emu, 0};
  Graph graph;
  build_training(graph, device);
  Runtime runtime({.workers = 1, .devices = {device}});
  const Session session(runtime, graph);
  EXPECT_FALSE(train::dispatcher_seconds(session.program(), runtime).has_value());
}

}  // namespace
}  // namespace purine
