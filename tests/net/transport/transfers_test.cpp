#include "purine/net/transport/transfers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "purine/core/error.h"

namespace purine::net {
namespace {

/// Rank 0 of 3. It writes down what it is asked to do, and does nothing.
class RecordingMessenger final : public Messenger {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  const std::string& host(int) const override { return host_; }
  std::uint32_t slots() const override { return slots_count; }
  void send_words(int peer, std::string encoded) override {
    const Words words = Words::decode(encoded);
    if (words.kind == Words::Kind::credit) {
      calls.push_back(fmt::format("credit to {}: channel {} version {} slot {} bytes {}", peer, words.channel,
                                  words.version, words.slot, words.bytes));
    } else if (words.kind == Words::Kind::refusal) {
      calls.push_back(fmt::format("refusal to {}: slot {} bytes {}", peer, words.slot, words.bytes));
    }
  }
  void send_chunk(int peer, std::uint32_t slot, const std::byte* memory, std::size_t bytes,
                  std::uint64_t ticket) override {
    last_sent = memory;
    calls.push_back(fmt::format("send to {}: slot {} bytes {}", peer, slot, bytes));
    sends.push_back(ticket);
  }
  void receive_chunk(int peer, std::uint32_t slot, std::byte* memory, std::size_t bytes,
                     std::uint64_t ticket) override {
    last_received = memory;
    calls.push_back(fmt::format("receive from {}: slot {} bytes {}", peer, slot, bytes));
    receives.push_back(ticket);
  }
  void withdraw(std::uint64_t ticket) override { calls.push_back(fmt::format("withdraw {}", ticket)); }
  void bound_unsent(std::size_t) override {}
  bool sending() const override { return false; }
  bool poll(MessengerListener&) override { return false; }
  void finish() override {}

  std::vector<std::string> take_calls() { return std::exchange(calls, {}); }

  std::uint32_t slots_count = 1000;
  std::vector<std::string> calls;
  const std::byte* last_sent = nullptr;
  const std::byte* last_received = nullptr;
  std::vector<std::uint64_t> sends;     // tickets, in the order of the chunks
  std::vector<std::uint64_t> receives;  // tickets, in the order of the chunks

 private:
  std::string host_ = "here";
};

class SetClock final : public Clock {
 public:
  std::int64_t now() const override { return time; }
  std::int64_t time = 0;  // nanoseconds
};

class RecordingListener final : public CompletionListener {
 public:
  void completed(std::uint64_t tag, std::exception_ptr error) override {
    std::string text = std::to_string(tag);
    if (error) {
      text += ": ";
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& caught) {
        text += caught.what();
      }
    }
    completions.push_back(text);
  }
  std::vector<std::string> take() { return std::exchange(completions, {}); }
  std::vector<std::string> completions;
};

using Texts = std::vector<std::string>;

class TransfersTest : public testing::Test {
 protected:
  Words credit(std::uint32_t channel, std::int64_t bytes, std::uint32_t slot) {
    return {.kind = Words::Kind::credit, .channel = channel, .version = 0, .bytes = bytes, .slot = slot};
  }
  void send(std::uint32_t channel, std::size_t bytes, double urgency) {
    transfers.send({{1, channel, 0}, memory.data(), bytes, urgency, &listener, channel});
  }
  void receive(int peer, std::uint32_t channel, std::size_t bytes) {
    transfers.receive({{peer, channel, 0}, memory.data(), bytes, 0, &listener, channel});
  }

  std::array<std::byte, 1024> memory{};
  RecordingMessenger messenger;
  RecordingListener listener;
  SetClock clock;
  Transfers transfers{messenger, clock, {.chunk_bytes = 10, .bytes_in_flight = 20}};
};

TEST_F(TransfersTest, SendsOnlyWithCreditWhicheverComesFirst) {
  send(5, 7, 0);
  EXPECT_EQ(messenger.take_calls(), Texts{});
  transfers.credit(1, credit(5, 7, 3));
  EXPECT_EQ(messenger.take_calls(), Texts{"send to 1: slot 3 bytes 7"});

  transfers.credit(1, credit(6, 0, 4));
  EXPECT_EQ(messenger.take_calls(), Texts{});
  send(6, 0, 0);
  EXPECT_EQ(messenger.take_calls(), Texts{"send to 1: slot 4 bytes 0"});

  transfers.chunk_sent(messenger.sends[1]);
  EXPECT_EQ(listener.take(), Texts{"6"});
  transfers.chunk_sent(messenger.sends[0]);
  EXPECT_EQ(listener.take(), Texts{"5"});
  EXPECT_EQ(transfers.pending(), 0u);
  EXPECT_EQ(transfers.sent(1), 2);
}

TEST_F(TransfersTest, MessagesOfOneNameMeetInOrder) {
  send(5, 7, 0);
  send(5, 8, 0);
  transfers.credit(1, credit(5, 7, 3));
  transfers.credit(1, credit(5, 8, 4));
  transfers.credit(1, credit(5, 9, 5));
  transfers.credit(1, credit(5, 10, 6));
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 3 bytes 7", "send to 1: slot 4 bytes 8"}));
  for (const std::uint64_t ticket : {messenger.sends[0], messenger.sends[1]}) transfers.chunk_sent(ticket);
  send(5, 9, 0);
  send(5, 10, 0);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 5 bytes 9", "send to 1: slot 6 bytes 10"}));
}

TEST_F(TransfersTest, TheMostUrgentMessageGivesTheNextChunk) {
  transfers.credit(1, credit(1, 35, 1));
  transfers.credit(1, credit(2, 15, 2));
  transfers.credit(1, credit(3, 4, 3));
  transfers.credit(1, credit(4, 4, 4));
  send(1, 35, 9);  // two chunks fill what may be in flight
  send(2, 15, 5);
  send(3, 4, 1);
  send(4, 4, 5);  // as urgent as the second, but later
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 1 bytes 10", "send to 1: slot 1 bytes 10"}));
  transfers.chunk_sent(messenger.sends[0]);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 3 bytes 4", "send to 1: slot 2 bytes 10"}));
  transfers.chunk_sent(messenger.sends[1]);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 2 bytes 5", "send to 1: slot 4 bytes 4"}));
  for (std::size_t i = 2; i < messenger.sends.size(); ++i) transfers.chunk_sent(messenger.sends[i]);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 1 bytes 10", "send to 1: slot 1 bytes 5"}));
  EXPECT_EQ(listener.take(), (Texts{"3", "2", "4", "1"}));
}

TEST_F(TransfersTest, ChunksHaveTheSizeThatWasSetLast) {
  transfers.set_chunk_bytes(15);
  transfers.credit(1, credit(1, 35, 1));
  send(1, 35, 9);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 1 bytes 15", "send to 1: slot 1 bytes 15"}));
  transfers.chunk_sent(messenger.sends[0]);
  EXPECT_EQ(messenger.take_calls(), (Texts{"send to 1: slot 1 bytes 5"}));
  receive(2, 3, 20);
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 2: slot 0 bytes 15", "receive from 2: slot 0 bytes 5",
                   "credit to 2: channel 3 version 0 slot 0 bytes 20"}));
}

// Chunks on their way to rank 1, of a message that is long enough, after the next one has gone at a time.
class TransfersWindowTest : public TransfersTest {
 protected:
  TransfersWindowTest() {
    paced.credit(1, credit(1, 1000, 1));
    paced.send({{1, 1, 0}, memory.data(), 1000, 0, &listener, 1});
  }
  std::size_t after_next(std::int64_t time) {
    clock.time = time;
    paced.chunk_sent(messenger.sends[gone++]);
    return messenger.sends.size() - gone;
  }

  std::size_t gone = 0;
  Transfers paced{messenger, clock, {10, 80, std::chrono::nanoseconds(1000)}};
};

TEST_F(TransfersWindowTest, AsManyChunksAreOnTheirWayAsGoInTheLongestWait) {
  EXPECT_EQ(messenger.sends.size(), 8u);
  // A chunk in 500 ns, so that two take the longest wait: no more are handed over until two are left.
  std::vector<std::size_t> on_their_way;
  for (int i = 1; i <= 10; ++i) on_their_way.push_back(after_next(500 * i));
  EXPECT_EQ(on_their_way, (std::vector<std::size_t>{8, 8, 7, 6, 5, 4, 3, 2, 2, 2}));
}

TEST_F(TransfersWindowTest, TwoChunksMayAlwaysBeOnTheirWay) {
  std::vector<std::size_t> on_their_way;
  for (int i = 1; i <= 9; ++i) on_their_way.push_back(after_next(1'000'000 * i));
  EXPECT_EQ(on_their_way, (std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 2, 2, 2}));
}

TEST_F(TransfersWindowTest, ALinkThatGetsFasterHasMoreOnItsWayAgain) {
  for (int i = 1; i <= 10; ++i) after_next(500 * i);
  // From now on a chunk takes 200 ns: 5 go in the longest wait.
  std::vector<std::size_t> on_their_way;
  for (int i = 1; i <= 8; ++i) on_their_way.push_back(after_next(5000 + 200 * i));
  EXPECT_EQ(on_their_way, (std::vector<std::size_t>{3, 5, 5, 5, 5, 5, 5, 5}));
}

TEST_F(TransfersWindowTest, AChunkAloneThatGoesSoonChangesNothing) {
  paced.credit(2, {.kind = Words::Kind::credit, .channel = 1, .bytes = 5, .slot = 8});
  paced.send({{2, 1, 0}, memory.data(), 5, 9, &listener, 0});
  clock.time = 900;  // by which 5 bytes would be all that goes in the longest wait
  paced.chunk_sent(messenger.sends.back());
  paced.credit(2, {.kind = Words::Kind::credit, .channel = 2, .bytes = 100, .slot = 9});
  messenger.take_calls();
  paced.send({{2, 2, 0}, memory.data(), 100, 0, &listener, 0});
  EXPECT_EQ(messenger.take_calls().size(), 8u);
}

/// Addresses, with no memory behind them.
class AddressRange {
 public:
  explicit AddressRange(std::size_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    PURINE_CHECK(start_ != MAP_FAILED);
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange() { ::munmap(start_, bytes_); }
  std::byte* start() const { return static_cast<std::byte*>(start_); }

 private:
  std::size_t bytes_;
  void* start_;
};

TEST_F(TransfersTest, AMessageOfManyGigabytesIsCutExactly) {
  constexpr std::size_t gigabyte = std::size_t{1} << 30;
  const AddressRange range(5 * gigabyte + 3);
  Transfers large(messenger, clock, {.chunk_bytes = gigabyte, .bytes_in_flight = 20 * gigabyte});
  large.receive({{1, 1, 0}, range.start(), 5 * gigabyte + 3, 0, &listener, 0});
  large.credit(1, credit(1, 5 * gigabyte + 3, 1));
  large.send({{1, 1, 0}, range.start(), 5 * gigabyte + 3, 0, &listener, 1});
  Texts expected(5, "receive from 1: slot 0 bytes 1073741824");
  expected.insert(expected.end(), {"receive from 1: slot 0 bytes 3",
                                   "credit to 1: channel 1 version 0 slot 0 bytes 5368709123"});
  expected.insert(expected.end(), 5, "send to 1: slot 1 bytes 1073741824");
  expected.push_back("send to 1: slot 1 bytes 3");
  EXPECT_EQ(messenger.take_calls(), expected);
  EXPECT_EQ(messenger.last_sent, range.start() + 5 * gigabyte);
  EXPECT_EQ(messenger.last_received, range.start() + 5 * gigabyte);
}

TEST_F(TransfersTest, PeersDoNotWaitForEachOther) {
  transfers.credit(1, credit(1, 100, 1));
  transfers.credit(2, {.kind = Words::Kind::credit, .channel = 1, .bytes = 5, .slot = 8});
  send(1, 100, 0);
  messenger.take_calls();
  transfers.send({{2, 1, 0}, memory.data(), 5, 9, &listener, 0});
  EXPECT_EQ(messenger.take_calls(), Texts{"send to 2: slot 8 bytes 5"});
}

TEST_F(TransfersTest, ReceivesArePostedBeforeTheirCreditIsGiven) {
  receive(2, 7, 15);
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 2: slot 0 bytes 10", "receive from 2: slot 0 bytes 5",
                   "credit to 2: channel 7 version 0 slot 0 bytes 15"}));
  receive(2, 8, 0);
  receive(1, 9, 1);
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 2: slot 1 bytes 0", "credit to 2: channel 8 version 0 slot 1 bytes 0",
                   "receive from 1: slot 0 bytes 1", "credit to 1: channel 9 version 0 slot 0 bytes 1"}));
  transfers.chunk_received(messenger.receives[0]);
  EXPECT_EQ(listener.take(), Texts{});
  transfers.chunk_received(messenger.receives[1]);
  EXPECT_EQ(listener.take(), Texts{"7"});
  receive(2, 10, 2);  // takes the slot that is free again
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 2: slot 0 bytes 2", "credit to 2: channel 10 version 0 slot 0 bytes 2"}));
}

TEST_F(TransfersTest, LargeReceivesArePostedAheadOfWhatMayBeInFlight) {
  receive(1, 7, 95);
  EXPECT_EQ(messenger.receives.size(), 6u);
  messenger.take_calls();
  for (std::size_t i = 0; i < 10; ++i) transfers.chunk_received(messenger.receives[i]);
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 1: slot 0 bytes 10", "receive from 1: slot 0 bytes 10",
                   "receive from 1: slot 0 bytes 10", "receive from 1: slot 0 bytes 5"}));
  EXPECT_EQ(listener.take(), Texts{"7"});
}

TEST_F(TransfersTest, ReceivesWithoutASlotWaitForOne) {
  messenger.slots_count = 1;
  receive(1, 7, 1);
  receive(1, 8, 2);
  EXPECT_EQ(messenger.take_calls().size(), 2u);
  transfers.chunk_received(messenger.receives[0]);
  EXPECT_EQ(messenger.take_calls(),
            (Texts{"receive from 1: slot 0 bytes 2", "credit to 1: channel 8 version 0 slot 0 bytes 2"}));
}

TEST_F(TransfersTest, AnotherSizeIsAnErrorAtBothEnds) {
  transfers.credit(1, credit(5, 8, 3));
  send(5, 7, 0);
  EXPECT_EQ(messenger.take_calls(), Texts{"refusal to 1: slot 3 bytes 7"});
  EXPECT_EQ(
      listener.take(),
      Texts{
          "5: [send] channel 5, version 0 has 7 bytes, rank 1 has offered memory for 8; hint: do both ranks "
          "run the same program on the same job?"});

  receive(2, 6, 8);
  messenger.take_calls();
  transfers.refusal(2, {.kind = Words::Kind::refusal, .bytes = 7, .slot = 0});
  EXPECT_EQ(messenger.take_calls().size(), 1u);
  EXPECT_EQ(listener.take(), Texts{});
  transfers.chunk_withdrawn(messenger.receives[0]);
  EXPECT_EQ(listener.take(), Texts{"6: [receive] channel 6, version 0 from rank 2 has 7 bytes, memory for 8 "
                                   "was offered; hint: do both "
                                   "ranks run the same program on the same job?"});
}

TEST_F(TransfersTest, AFailureEndsWhatTheMessengerHasNotAndThenTheRest) {
  transfers.credit(1, credit(1, 50, 1));
  send(1, 50, 0);    // two chunks are with the messenger
  send(2, 50, 0);    // waits for credit
  receive(2, 3, 5);  // is with the messenger
  transfers.fail(std::make_exception_ptr(RemoteError(2, "gone")));
  EXPECT_EQ(listener.take(), Texts{"2: [rank 2] gone"});
  send(4, 1, 0);
  receive(1, 5, 1);
  EXPECT_EQ(listener.take(), (Texts{"4: [rank 2] gone", "5: [rank 2] gone"}));

  EXPECT_EQ(transfers.sending_but_to(2), 1u);
  EXPECT_EQ(transfers.sending_but_to(1), 0u);
  messenger.take_calls();
  transfers.chunk_sent(messenger.sends[0]);
  EXPECT_EQ(listener.take(), Texts{});
  transfers.chunk_sent(messenger.sends[1]);
  EXPECT_EQ(listener.take(), Texts{"1: [rank 2] gone"});
  EXPECT_EQ(messenger.take_calls(), Texts{});  // no further chunk

  transfers.withdraw();
  EXPECT_EQ(messenger.take_calls().size(), 1u);
  transfers.abandon();
  EXPECT_EQ(listener.take(), Texts{"3: [rank 2] gone"});
  EXPECT_EQ(transfers.pending(), 0u);
}

TEST_F(TransfersTest, ADepartedPeerIsMissedWhereItOwesSomething) {
  EXPECT_EQ(transfers.missed(), std::nullopt);
  receive(2, 1, 5);
  receive(2, 2, 5);
  transfers.departed(2, 2);
  EXPECT_EQ(transfers.missed(), std::nullopt);  // both messages may be on their way
  transfers.chunk_received(messenger.receives[0]);
  transfers.chunk_received(messenger.receives[1]);
  EXPECT_EQ(transfers.missed(), std::nullopt);
  receive(2, 3, 5);
  EXPECT_EQ(transfers.missed(), std::optional(2));
}

TEST_F(TransfersTest, ADepartedPeerIsMissedWhereItTakesNothing) {
  transfers.credit(1, credit(1, 5, 1));
  transfers.departed(1, 0);
  send(1, 5, 0);
  EXPECT_EQ(transfers.missed(), std::nullopt);
  send(2, 5, 0);
  EXPECT_EQ(transfers.missed(), std::optional(1));
}

}  // namespace
}  // namespace purine::net
