// Ranks as threads pass what ranks as processes must pass (mpi_test.py).
#include "tests/net/conformance.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine::net {
namespace {

struct Network {
  std::string name;
  InProcessOptions options;
};

std::vector<Network> networks() {
  return {{"Instant", {}},
          {"OfSetSpeed",
           {.bytes_per_second = 1e9,
            .latency = std::chrono::microseconds(50),
            .chunk_bytes = 100'000,
            .shuffle_seed = 3}}};
}

class ConformanceTest : public testing::TestWithParam<std::tuple<int, Network, test::EndpointCheck>> {};

TEST_P(ConformanceTest, RanksAsThreadsPass) {
  const Watchdog watchdog;
  const auto& [ranks, network, check] = GetParam();
  InProcessHub hub(ranks, network.options);
  EXPECT_EQ(test::at_ranks(hub, ranks, check.run), std::vector<std::string>(static_cast<std::size_t>(ranks)));
}

std::string name_of(const testing::TestParamInfo<ConformanceTest::ParamType>& info) {
  return std::get<2>(info.param).name + "With" + std::to_string(std::get<0>(info.param)) + "Ranks" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Checks, ConformanceTest,
                         testing::Combine(testing::Values(2, 3, 4), testing::ValuesIn(networks()),
                                          testing::ValuesIn(test::endpoint_checks())),
                         name_of);

}  // namespace
}  // namespace purine::net
