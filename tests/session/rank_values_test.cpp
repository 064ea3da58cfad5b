#include "purine/session/rank_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/session/session.h"
#include "purine/session/whole_values.h"
#include "tests/session/two_layers.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using parallel::Mesh;
using parallel::WholeVariable;
using test::at_ranks;

parallel::Partitioned divide(Graph& graph, int scheme, std::int32_t second_rank) {
  const std::vector<Location> four = {{0, DeviceKind::emu, 0},
                                      {0, DeviceKind::emu, 1},
                                      {second_rank, DeviceKind::emu, 2},
                                      {second_rank, DeviceKind::emu, 3}};
  if (scheme == 0) return parallel::data_parallel(graph, Mesh(four), {.update = parallel::UpdateAt::shards});
  if (scheme == 1) return parallel::data_parallel(graph, Mesh(four));
  return parallel::hybrid(graph, Mesh("data=2,model=2", four), {.layers_axis = "model"});
}

class RankValuesTest : public testing::TestWithParam<int> {
 private:
  const Watchdog watchdog_;
};

INSTANTIATE_TEST_SUITE_P(Schemes, RankValuesTest, testing::Range(0, 3));

TEST_P(RankValuesTest, WholesAreGatheredAtRankZeroAndDividedAgain) {
  test::TwoLayers net;
  parallel::Partitioned together = divide(net.graph, GetParam(), 0);
  const std::vector<WholeVariable> pieces = parallel::whole_variables(net.graph, together);
  Runtime runtime({.workers = 2, .devices = together.mesh().locations()});
  Session alone(runtime, together.graph());
  test::feed(alone, together.at(net.image), together.at(net.label));
  alone.run_steps(3);
  alone.drain();
  const std::vector<io::HostTensor> expected = gather_whole_values(runtime, pieces, alone.variables());
  EXPECT_EQ(expected, whole_values(pieces, alone.variables()));

  net::InProcessHub hub(2, {.shuffle_seed = 3});
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    test::TwoLayers here;
    parallel::Partitioned parts = divide(here.graph, GetParam(), 1);
    const std::vector<WholeVariable> variables = parallel::whole_variables(here.graph, parts);
    Runtime own({.workers = 1, .devices = parts.mesh().locations(), .endpoint = &endpoint});
    Session session(own, parts.graph());
    test::feed(session, parts.at(here.image), parts.at(here.label));
    session.run_steps(3);
    session.drain();
    const std::vector<io::HostTensor> wholes = gather_whole_values(own, variables, session.variables());
    EXPECT_EQ(wholes, endpoint.rank() == 0 ? expected : std::vector<io::HostTensor>{});

    // All pieces and replicas of another session get what they had in the first one.
    Session next(own, parts.graph(), {.seed = 9});
    const auto read = [&](const WholeVariable& variable) -> std::span<const std::byte> {
      EXPECT_EQ(endpoint.rank(), 0);
      return io::find_tensor(wholes, variable.path)->data;
    };
    divide_whole_values(own, variables, read, next.variables());
    EXPECT_EQ(next.variables().values(), session.variables().values());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(RankValuesErrorTest, WhatCannotBeReadAtRankZeroIsToldToAll) {
  const Watchdog watchdog;
  net::InProcessHub hub(2);
  const auto errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    test::TwoLayers net;
    parallel::Partitioned parts = divide(net.graph, 0, 1);
    const std::vector<WholeVariable> variables = parallel::whole_variables(net.graph, parts);
    Runtime own({.workers = 1, .devices = parts.mesh().locations(), .endpoint = &endpoint});
    Session session(own, parts.graph());
    const auto read = [](const WholeVariable& variable) -> std::span<const std::byte> {
      throw Error("checkpoint", "has no " + variable.path);
    };
    divide_whole_values(own, variables, read, session.variables());
  });
  EXPECT_EQ(errors[0], "[checkpoint] has no fc1/weight");
  EXPECT_EQ(errors[1], "[rank 0] at this process, [checkpoint] has no fc1/weight");
}

}  // namespace
}  // namespace purine
