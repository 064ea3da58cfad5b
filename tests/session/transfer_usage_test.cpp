// What the ranks of a session exchange, as their runtimes measure it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/net/in_process_endpoint.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/ops/reshape.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/session/gather_values.h"
#include "purine/session/session.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

constexpr std::int64_t input_width = 64;
constexpr std::int64_t output_width = 16;
constexpr std::int64_t parameter_count = input_width * output_width + output_width;
constexpr std::int64_t step_count = 5;

// Of each rank, of a data parallel run: bytes that end on lines of 64 bytes, so that buckets have no gaps.
std::vector<trace::TransferUsage> train(parallel::UpdateAt update) {
  constexpr int ranks = 2;
  std::vector<trace::TransferUsage> usages;
  net::InProcessHub hub(ranks, {.bytes_per_second = 1e8});
  const auto errors = test::at_ranks(hub, ranks, [&](Endpoint& endpoint) {
    Graph graph;
    const data::Batch batch =
        data::synthetic(graph, {.batch = 8, .image = {1, 8, 8}, .classes = output_width});
    const Tensor features = ops::reshape(batch.image, {8, input_width});
    optim::momentum(ops::softmax_cross_entropy(nn::linear(features, output_width, {}), batch.label), {});
    parallel::Partitioned divided =
        parallel::data_parallel(graph, parallel::Mesh{"0/cpu:0", "1/cpu:0"}, {.update = update});
    Runtime runtime({.workers = 1, .devices = divided.mesh().locations(), .endpoint = &endpoint});
    Session session(runtime, divided.graph());
    session.run_steps(1);
    runtime.transfer_meter()->reset();
    session.run_steps(step_count);
    const auto all = gather_values(&endpoint, runtime.transfer_meter()->usage());
    if (endpoint.rank() == 1) usages = all;
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
  return usages;
}

// With two ranks, each sends half of a gradient and half of its sum, or of what the update makes; and as much
// of the loss, which is one number more.
TEST(TransferUsageTest, ARankSendsItsGradientsBytesOnceAStep) {
  const Watchdog watchdog;
  for (const parallel::UpdateAt update : {parallel::UpdateAt::everywhere, parallel::UpdateAt::shards}) {
    const std::vector<trace::TransferUsage> usages = train(update);
    ASSERT_EQ(usages.size(), 2u);
    for (const trace::TransferUsage& usage : usages) {
      EXPECT_EQ(usage.bytes_sent, step_count * (parameter_count + 1) * 4);
      EXPECT_EQ(usage.bytes_received, step_count * (parameter_count + 1) * 4);
      EXPECT_EQ(usage.messages_sent % step_count, 0);
      EXPECT_GT(usage.computing, 0);
      EXPECT_GT(usage.busy, 0);
      EXPECT_LE(usage.overlapped, std::min(usage.busy, usage.computing));
      EXPECT_LE(usage.busy, usage.time);
    }
    EXPECT_EQ(usages[0].messages_sent, usages[1].messages_received);
  }
}

TEST(TransferUsageTest, OneProcessMeasuresNothing) {
  const Runtime runtime;
  EXPECT_EQ(runtime.transfer_meter(), nullptr);
}

}  // namespace
}  // namespace purine
