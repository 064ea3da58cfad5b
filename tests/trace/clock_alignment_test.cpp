#include "purine/trace/clock_alignment.h"

#include <gtest/gtest.h>

#include <random>

namespace purine::trace {
namespace {

using Moves = std::vector<std::int64_t>;

TEST(ClockAlignmentTest, MovesNothingWhereEveryMessageComesAfterItWasSent) {
  const std::vector<ObservedMessage> messages = {{0, 1, 100, 150}, {1, 0, 200, 200}};
  EXPECT_EQ(moves_for_causality(2, messages), (Moves{0, 0}));
  EXPECT_EQ(moves_for_causality(3, {}), (Moves{0, 0, 0}));
}

TEST(ClockAlignmentTest, MovesAReceiverByTheLeastThatSuffices) {
  const std::vector<ObservedMessage> messages = {{0, 1, 100, 90}, {0, 1, 200, 170}, {1, 0, 180, 300}};
  EXPECT_EQ(moves_for_causality(2, messages), (Moves{0, 30}));
}

TEST(ClockAlignmentTest, RankZeroStaysAndTheOthersMoveBack) {
  EXPECT_EQ(moves_for_causality(2, std::vector<ObservedMessage>{{1, 0, 100, 75}}), (Moves{0, -25}));
}

// 0 to 1 asks for 10, 1 to 2 for 5 more; 0 to 2 alone would ask for 12.
TEST(ClockAlignmentTest, MovesAddUpAlongAChain) {
  const std::vector<ObservedMessage> messages = {{1, 2, 50, 45}, {0, 2, 30, 18}, {0, 1, 20, 10}};
  EXPECT_EQ(moves_for_causality(3, messages), (Moves{0, 10, 15}));
}

// True clocks exist, so all messages can be put right, whatever is wrong with those that are told.
TEST(ClockAlignmentTest, RandomClocksAreMadeConsistent) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    constexpr int ranks = 5;
    Moves wrong(ranks);
    for (std::int64_t& each : wrong) each = static_cast<int>(random() % 2000) - 1000;
    std::vector<ObservedMessage> messages;
    for (int i = 0; i < 200; ++i) {
      const int from = static_cast<int>(random() % ranks);
      const int to = static_cast<int>((from + 1 + random() % (ranks - 1)) % ranks);
      const std::int64_t sent = random() % 100'000;
      const std::int64_t received = sent + 20 + random() % 500;
      messages.push_back({from, to, sent + wrong[static_cast<std::size_t>(from)],
                          received + wrong[static_cast<std::size_t>(to)]});
    }
    const Moves moves = moves_for_causality(ranks, messages);
    EXPECT_EQ(moves.front(), 0);
    for (const ObservedMessage& message : messages) {
      EXPECT_LE(message.sent + moves[static_cast<std::size_t>(message.from)],
                message.received + moves[static_cast<std::size_t>(message.to)]);
    }
  }
}

// Rank 1's clock runs fast: no one move puts both right, and the work still ends.
TEST(ClockAlignmentTest, ClocksThatContradictThemselvesEnd) {
  const std::vector<ObservedMessage> messages = {{0, 1, 100, 90}, {1, 0, 1000, 980}};
  EXPECT_EQ(moves_for_causality(2, messages).front(), 0);
}

}  // namespace
}  // namespace purine::trace
