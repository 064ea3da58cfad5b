#include "purine/trace/transfer_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace purine::trace {
namespace {

class SetClock final : public Clock {
 public:
  std::int64_t now() const override { return time; }
  std::int64_t time = 1000;
};

/// Time goes to the right, ten to a step, from 1000 on:
///
///     operators   0……20    30………60                  100…120
///                    10…………40                            (two workers: their union is 0 to 60)
///     messages          15…………50     65…75
///                          30………………70
class TransferMeterTest : public testing::Test {
 protected:
  void begin_operator(std::int64_t time) {
    clock.time = 1000 + time;
    operators.push_back(std::make_unique<TransferMeter::Computing>(&meter));
  }
  void end_operator(std::int64_t time) {
    clock.time = 1000 + time;
    operators.erase(operators.begin());
  }
  void begin_message(std::int64_t time, bool sends) {
    clock.time = 1000 + time;
    meter.message_begins(sends);
  }
  void end_message(std::int64_t time, bool sends, std::size_t bytes) {
    clock.time = 1000 + time;
    meter.message_ends(sends, bytes);
  }

  SetClock clock;
  TransferMeter meter{&clock};
  std::vector<std::unique_ptr<TransferMeter::Computing>> operators;
};

TEST_F(TransferMeterTest, MeasuresTheUnionsAndWhatTheyHaveInCommon) {
  begin_operator(0);
  begin_operator(10);
  begin_message(15, true);
  end_operator(20);
  begin_operator(30);
  begin_message(30, false);
  end_operator(40);
  end_message(50, true, 700);
  end_operator(60);
  begin_message(65, true);
  end_message(70, false, 900);
  end_message(75, true, 80);
  begin_operator(100);
  end_operator(120);
  clock.time = 1150;
  const TransferUsage usage = meter.usage();
  EXPECT_EQ(usage.time, 150);
  EXPECT_EQ(usage.computing, 60 + 20);
  EXPECT_EQ(usage.busy, 75 - 15);
  EXPECT_EQ(usage.overlapped, 60 - 15);
  EXPECT_EQ(usage.exposed(), 75 - 60);
  EXPECT_DOUBLE_EQ(usage.overlapped_share(), 45.0 / 60.0);
  EXPECT_EQ(usage.messages_sent, 2);
  EXPECT_EQ(usage.messages_received, 1);
  EXPECT_EQ(usage.bytes_sent, 780);
  EXPECT_EQ(usage.bytes_received, 900);
}

TEST_F(TransferMeterTest, TellsWhatHasComeSinceAMoment) {
  begin_operator(0);
  begin_message(10, true);
  end_message(15, true, 300);
  begin_message(20, false);
  clock.time = 1025;
  const TransferUsage before = meter.usage();
  end_operator(30);
  end_message(40, false, 900);
  begin_message(45, true);
  end_message(50, true, 70);
  const TransferUsage since = meter.usage().since(before);
  EXPECT_EQ(since.time, 50 - 25);
  EXPECT_EQ(since.computing, 30 - 25);
  EXPECT_EQ(since.busy, 40 - 25 + 50 - 45);
  EXPECT_EQ(since.overlapped, 30 - 25);
  EXPECT_EQ(since.messages_sent, 1);
  EXPECT_EQ(since.messages_received, 1);
  EXPECT_EQ(since.bytes_sent, 70);
  EXPECT_EQ(since.bytes_received, 900);
}

TEST_F(TransferMeterTest, CountsWhatIsUnderWayUpToNow) {
  begin_message(10, false);
  begin_operator(30);
  clock.time = 1070;
  EXPECT_EQ(meter.usage(), (TransferUsage{.time = 70, .computing = 40, .busy = 60, .overlapped = 40}));
  clock.time = 1090;
  EXPECT_EQ(meter.usage(), (TransferUsage{.time = 90, .computing = 60, .busy = 80, .overlapped = 60}));
}

TEST_F(TransferMeterTest, GoesOnWithWhatIsUnderWayWhenReset) {
  begin_message(10, true);
  begin_operator(20);
  clock.time = 1040;
  meter.reset();
  end_operator(45);
  end_message(60, true, 5);
  EXPECT_EQ(
      meter.usage(),
      (TransferUsage{
          .time = 20, .computing = 5, .busy = 20, .overlapped = 5, .messages_sent = 1, .bytes_sent = 5}));
}

TEST_F(TransferMeterTest, AClockThatAnotherThreadReadLaterDoesNotCountTwice) {
  begin_operator(50);
  end_operator(40);
  EXPECT_EQ(meter.usage(), (TransferUsage{.time = 50}));
}

TEST_F(TransferMeterTest, NothingMovedIsNothingExposed) {
  EXPECT_EQ(meter.usage(), TransferUsage{});
  EXPECT_DOUBLE_EQ(meter.usage().overlapped_share(), 1);
}

TEST_F(TransferMeterTest, ManyThreadsAtATime) {
  constexpr int threads = 4;
  constexpr int rounds = 1000;
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([this, thread] {
      for (int i = 0; i < rounds; ++i) {
        const TransferMeter::Computing computing(&meter);
        meter.message_begins(thread % 2 == 0);
        meter.message_ends(thread % 2 == 0, 3);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  const TransferUsage usage = meter.usage();
  EXPECT_EQ(usage.messages_sent, threads / 2 * rounds);
  EXPECT_EQ(usage.bytes_received, 3 * threads / 2 * rounds);
  clock.time = 1100;
  EXPECT_EQ(meter.usage().computing, 0);
  EXPECT_EQ(meter.usage().busy, 0);
}

TEST(ComputingTest, DoesNothingWithoutAMeter) {
  const TransferMeter meter;
  { const TransferMeter::Computing computing(nullptr); }
  EXPECT_EQ(meter.usage().computing, 0);
}

}  // namespace
}  // namespace purine::trace
