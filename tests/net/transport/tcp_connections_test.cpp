#include "purine/net/transport/tcp_connections.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace purine::net {
namespace {

/// A connection of this process with itself; the listening socket stays open.
class LoopTest : public testing::Test {
 protected:
  LoopTest() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listening, generic, size), 0);
    EXPECT_EQ(::listen(listening, 1), 0);
    EXPECT_EQ(::getsockname(listening, generic, &size), 0);
    EXPECT_EQ(::connect(one_end, generic, size), 0);
    other_end = ::accept(listening, nullptr, nullptr);
    EXPECT_GE(other_end, 0);
  }
  ~LoopTest() override {
    for (const int descriptor : {listening, one_end, other_end, datagrams}) ::close(descriptor);
  }
  static int bound_of(int descriptor) {
    int bound = -1;
    socklen_t size = sizeof(bound);
    EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bound, &size), 0);
    return bound;
  }

  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  const int one_end = ::socket(AF_INET, SOCK_STREAM, 0);
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM, 0);
  int other_end = -1;
};

TEST_F(LoopTest, BothEndsOfAConnectionAreBound) {
  EXPECT_EQ(bound_unsent_bytes(70'000), 2);
  EXPECT_EQ(bound_of(one_end), 70'000);
  EXPECT_EQ(bound_of(other_end), 70'000);
}

TEST_F(LoopTest, WhatIsNoConnectionStaysAsItWas) {
  const int before = bound_of(listening);
  bound_unsent_bytes(70'000);
  EXPECT_EQ(bound_of(listening), before);
}

TEST_F(LoopTest, TheLastBoundHolds) {
  bound_unsent_bytes(70'000);
  bound_unsent_bytes(90'000);
  EXPECT_EQ(bound_of(one_end), 90'000);
}

TEST_F(LoopTest, NothingElseIsToldToTheConnection) {
  bound_unsent_bytes(70'000);
  const std::array<char, 3> sent{'a', 'b', 'c'};
  ASSERT_EQ(::write(one_end, sent.data(), sent.size()), 3);
  std::array<char, 3> received{};
  ASSERT_EQ(::recv(other_end, received.data(), received.size(), MSG_WAITALL), 3);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace purine::net
