#include "purine/trace/message_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/trace/units.h"

namespace purine::trace {
namespace {

constexpr std::int64_t megabyte = 1'000'000;

/// Messages among three ranks, each with its own operators.
class Messages {
 public:
  Messages() : ranks_(3) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].rank = static_cast<std::int32_t>(rank);
      ranks_[rank].tracks = {"network"};
    }
  }

  /// One that is sent at `sent`, for which memory was offered at `offered`, and that came at `came`. Returns
  /// its number.
  std::size_t add(std::int32_t from, std::int32_t to, std::int64_t bytes, std::int64_t sent,
                  std::int64_t offered, std::int64_t came) {
    const auto channel = static_cast<std::uint32_t>(receives_.size());
    const auto end = [&](std::int32_t rank, bool sends, std::int64_t begin) {
      Trace& trace = ranks_[static_cast<std::size_t>(rank)];
      OperatorLabel label{"exchange", sends ? "send" : "receive", "", ""};
      label.exchange = {sends, sends ? to : from, channel, bytes};
      trace.operators.push_back(label);
      trace.events.push_back({static_cast<std::uint32_t>(trace.operators.size() - 1), 0, 0, 0, begin, came});
      return EventId{static_cast<std::size_t>(rank), trace.events.size() - 1};
    };
    end(from, true, sent);
    receives_.push_back(end(to, false, offered));
    return receives_.size() - 1;
  }

  /// What each message's time consists of.
  std::vector<MessageTime> times(const NetworkSpeed& network) const {
    const Timeline timeline(ranks_);
    const MessageTimes times(timeline, network);
    std::vector<MessageTime> all;
    for (const EventId id : receives_) {
      const EventId send = *timeline.other_end(id);
      const std::int64_t start = timeline.start(id);
      all.push_back(times.of(id, start, timeline.event(id).end));
      const MessageTime sent = times.of(send, start, timeline.event(send).end);
      EXPECT_EQ(sent.rate, all.back().rate) << "either end stands for the message";
      EXPECT_EQ(sent.latency, all.back().latency);
    }
    return all;
  }

 private:
  std::vector<Trace> ranks_;
  std::vector<EventId> receives_;
};

/// 1 MB takes 1 ms.
NetworkSpeed gigabyte_a_second(double message_seconds = 0, double latency = 0) {
  return {std::vector<LinkSpeed>(3, {1e9, message_seconds, latency})};
}

void expect_time(const MessageTime& time, std::int64_t rate, std::int64_t messages, std::int64_t latency,
                 std::int64_t waiting) {
  EXPECT_EQ(time.rate, rate);
  EXPECT_EQ(time.messages, messages);
  EXPECT_EQ(time.latency, latency);
  EXPECT_EQ(time.waiting, waiting);
}

TEST(MessageTimesTest, WhatIsBeforeAMessageOnItsLinkCountsAsTheRate) {
  Messages messages;
  messages.add(0, 1, 10 * megabyte, 0, 0, 20 * ms);
  messages.add(0, 2, 10 * megabyte, 0, 0, 30 * ms);
  const std::vector<MessageTime> times = messages.times(gigabyte_a_second());
  expect_time(times[0], 10 * ms, 0, 0, 10 * ms);
  expect_time(times[1], 20 * ms, 0, 0, 10 * ms);
}

TEST(MessageTimesTest, AReceiverThatTwoSendToIsALinkTheyShare) {
  Messages messages;
  messages.add(0, 2, 10 * megabyte, 0, 0, 10 * ms);
  messages.add(1, 2, 10 * megabyte, 0, 0, 20 * ms);
  const std::vector<MessageTime> times = messages.times(gigabyte_a_second());
  expect_time(times[0], 10 * ms, 0, 0, 0);
  expect_time(times[1], 20 * ms, 0, 0, 0);
}

TEST(MessageTimesTest, ASwitchIsALinkOfAll) {
  Messages messages;
  messages.add(0, 1, 10 * megabyte, 0, 0, 20 * ms);
  messages.add(1, 2, 10 * megabyte, 0, 0, 40 * ms);
  NetworkSpeed network = gigabyte_a_second();
  expect_time(messages.times(network)[1], 10 * ms, 0, 0, 30 * ms);
  network.switch_bytes_per_second = 0.5e9;
  expect_time(messages.times(network)[1], 40 * ms, 0, 0, 0);
}

TEST(MessageTimesTest, MessagesCostTheirSenderMoreThanTheirBytes) {
  Messages messages;
  for (int i = 1; i <= 10; ++i) messages.add(0, 1, 1'000, 0, 0, i * ms);
  const std::vector<MessageTime> times = messages.times(gigabyte_a_second(0.999e-3));
  for (int i = 1; i <= 10; ++i) {
    expect_time(times[static_cast<std::size_t>(i - 1)], 1'000 * i, 999'000 * i, 0, 0);
  }
  // Each chunk of 256 KiB has that cost.
  Messages large;
  large.add(0, 1, 1'048'576, 0, 0, 10 * ms);
  expect_time(large.times(gigabyte_a_second(1e-3))[0], 1'048'576, 4 * ms, 0, 10 * ms - 5'048'576);
}

TEST(MessageTimesTest, LatencyIsAtTheEndAndBeforeAMessageWhoseMemoryCameLate) {
  Messages messages;
  messages.add(0, 1, megabyte, 20 * ms, 0, 27 * ms);
  messages.add(0, 2, megabyte, 50 * ms, 60 * ms, 72 * ms);
  messages.add(0, 1, megabyte, 90 * ms, 87 * ms, 100 * ms);  // half way when it is ready
  const std::vector<MessageTime> times = messages.times(gigabyte_a_second(0, 5e-3));
  expect_time(times[0], ms, 0, 5 * ms, ms);
  expect_time(times[1], ms, 0, 10 * ms, ms);
  expect_time(times[2], ms, 0, 7 * ms, 2 * ms);
}

TEST(MessageTimesTest, LaterWorkIsNotDoneBeforeItsMessageIsReady) {
  Messages messages;
  // The second one's work fits only in what the first leaves free after 10 ms.
  messages.add(0, 1, 10 * megabyte, 0, 0, 20 * ms);
  messages.add(0, 1, 5 * megabyte, 10 * ms, 10 * ms, 20 * ms);
  const std::vector<MessageTime> times = messages.times(gigabyte_a_second());
  expect_time(times[0], 15 * ms, 0, 0, 5 * ms);
  expect_time(times[1], 10 * ms, 0, 0, 0);
}

TEST(MessageTimesTest, OfAnUnknownNetworkNothingIsTold) {
  Messages messages;
  messages.add(0, 1, megabyte, 0, 0, 5 * ms);
  expect_time(messages.times({})[0], 0, 0, 0, 5 * ms);
  expect_time(messages.times({{{1e9, 0, 0}}})[0], 0, 0, 0, 5 * ms);
}

}  // namespace
}  // namespace purine::trace
