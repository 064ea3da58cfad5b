#include "purine/net/start_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "purine/runtime/cpu_workers.h"
#include "tests/support/ranks.h"

namespace purine::net {
namespace {

/// A rank that only knows where the others are.
class KnownHosts final : public Endpoint {
 public:
  KnownHosts(int rank, std::vector<std::string> hosts) : rank_(rank), hosts_(std::move(hosts)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  std::string host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }
  void receive(const Message&, std::byte*, std::size_t, CompletionListener&, std::uint64_t) override {}
  void send(const Message&, const std::byte*, std::size_t, double, CompletionListener&,
            std::uint64_t) override {}
  std::vector<std::string> all_gather(std::string_view) override { return {}; }
  void announce_end(std::int64_t, std::int64_t) override {}
  std::vector<std::int64_t> announced_ends(std::int64_t) const override { return {}; }
  void fail(std::string_view) override {}
  void observe(std::shared_ptr<TransferObserver>) override {}
  void fit_to(double) override {}

 private:
  int rank_;
  std::vector<std::string> hosts_;
};

TEST(LocalRankTest, CountsTheRanksOfOnesHost) {
  const std::vector<std::string> hosts{"a", "b", "a", "b", "b"};
  const std::vector<std::pair<int, int>> expected{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (int rank = 0; rank < 5; ++rank) {
    const LocalRank local = local_rank(KnownHosts(rank, hosts));
    EXPECT_EQ(std::pair(local.rank, local.size), expected[static_cast<std::size_t>(rank)]);
  }
}

TEST(OwnCoresTest, RanksOfAHostShareItsCores) {
  const int available = static_cast<int>(CpuWorkers::available_cores().size());
  for (const int ranks : {1, 2, 3}) {
    InProcessHub hub(ranks);
    std::atomic<int> sum = 0;
    test::at_ranks(hub, ranks, [&](Endpoint& endpoint) {
      const int own = own_cores(endpoint);
      EXPECT_GE(own, 1);
      sum += own;
    });
    EXPECT_EQ(sum, std::max(available, ranks));
  }
}

TEST(InterfaceTest, IsTheOneInANetworkOfBoth) {
  const std::vector<Interface> own{{"eth0", "192.168.1.5", 24}, {"ib0", "10.1.2.3", 16}};
  EXPECT_EQ(interface_to(own, {{"eno1", "10.1.200.7", 16}}).name, "ib0");
  EXPECT_EQ(interface_to(own, {{"eno1", "10.2.2.4", 16}, {"eno2", "192.168.1.200", 24}}).name, "eth0");
}

TEST(InterfaceTest, TheNarrowerNetworkDecides) {
  EXPECT_EQ(interface_to({{"a", "10.1.1.1", 8}, {"b", "10.1.2.1", 24}}, {{"c", "10.1.2.9", 24}}).name, "b");
}

TEST(InterfaceTest, IsTheFirstWhereThereIsNoSuchNetwork) {
  EXPECT_EQ(
      interface_to({{"eth0", "192.168.1.5", 24}, {"eth1", "192.168.2.5", 24}}, {{"x", "10.0.0.1", 8}}).name,
      "eth0");
  EXPECT_EQ(interface_to({{"eth0", "192.168.1.5", 24}}, {}).name, "eth0");
  EXPECT_EQ(interface_to({}, {{"x", "10.0.0.1", 8}}).name, "");
}

TEST(InterfaceTest, AnAddressOfOneHostAlone) {
  EXPECT_EQ(interface_to({{"tun0", "10.8.0.6", 32}, {"eth0", "10.8.0.6", 0}}, {{"x", "10.8.0.7", 0}}).name,
            "eth0");
}

}  // namespace
}  // namespace purine::net
