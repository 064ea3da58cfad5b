#include "purine/net/start_up.h"

#include <gtest/gtest.h>

namespace purine::net {
namespace {

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
