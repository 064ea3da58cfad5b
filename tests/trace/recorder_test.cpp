#include "purine/trace/recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace purine::trace {
namespace {

std::vector<std::string> workers(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("worker " + std::to_string(i));
  return names;
}

TEST(RecorderTest, GivesBackWhatWasRecordedInOrderOfTime) {
  Recorder recorder(workers(2));
  const std::uint32_t load = recorder.name("load");
  const std::uint32_t bytes = recorder.name("bytes");
  EXPECT_EQ(recorder.name("load"), load);
  recorder.record(1, 7, 2, 40, 300, 350);
  recorder.record(0, 8, 0, 40, 100, 200);
  recorder.record(0, 7, 1, 41, 300, 310);
  recorder.span(1, load, 50, 60);
  recorder.counter(0, bytes, 55, 1.5);

  const Trace trace = recorder.trace();
  EXPECT_EQ(trace.tracks, (std::vector<std::string>{"worker 0", "worker 1"}));
  EXPECT_EQ(trace.names, (std::vector<std::string>{"load", "bytes"}));
  EXPECT_EQ(trace.events, (std::vector<OperatorEvent>{
                              {8, 0, 0, 40, 100, 200}, {7, 1, 0, 41, 300, 310}, {7, 2, 1, 40, 300, 350}}));
  EXPECT_EQ(trace.spans, (std::vector<SpanEvent>{{load, 1, 50, 60}}));
  EXPECT_EQ(trace.counters, (std::vector<CounterEvent>{{bytes, 0, 55, 1.5}}));
  EXPECT_EQ(trace.dropped, 0U);
}

TEST(RecorderTest, RecordsOnlyTheIterationsThatAreWanted) {
  Recorder recorder(workers(1), {.first_iteration = 10, .end_iteration = 12});
  for (std::int64_t iteration = 8; iteration < 15; ++iteration)
    recorder.record(0, 0, 0, iteration, iteration, 99);
  EXPECT_TRUE(recorder.wants(11));
  EXPECT_FALSE(recorder.wants(12));
  recorder.set_iterations(20, 21);
  for (std::int64_t iteration = 19; iteration < 25; ++iteration)
    recorder.record(0, 0, 0, iteration, iteration, 99);
  std::vector<std::int64_t> iterations;
  for (const OperatorEvent& event : recorder.trace().events) iterations.push_back(event.iteration);
  EXPECT_EQ(iterations, (std::vector<std::int64_t>{10, 11, 20}));
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST(RecorderTest, CountsWhatFindsNoRoom) {
  Recorder recorder(workers(2), {.capacity = 3});
  for (int i = 0; i < 5; ++i) recorder.record(0, 0, 0, i, i, i + 1);
  recorder.record(1, 0, 0, 9, 9, 10);
  EXPECT_EQ(recorder.dropped(), 2U);
  const Trace trace = recorder.trace();
  EXPECT_EQ(trace.dropped, 2U);
  ASSERT_EQ(trace.events.size(), 4U);
  EXPECT_EQ(trace.events[2].iteration, 2);  // the first ones stay
  recorder.clear();
  EXPECT_TRUE(recorder.trace().events.empty());
  recorder.record(0, 0, 0, 5, 5, 6);
  EXPECT_EQ(recorder.trace().events.size(), 1U);
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST(RecorderTest, ManyThreadsRecordWhileOneReads) {
  for (const int thread_count : {1, 2, 4, 16}) {
    constexpr int each = 2000;
    const std::size_t capacity = 3000;
    Recorder recorder(workers(thread_count + 1), {.capacity = capacity});
    std::atomic<int> running{thread_count};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < each; ++i) {
          // Every event can be checked by itself: its fields follow from the thread and i.
          recorder.record(t, static_cast<std::uint32_t>(t), i, t + i, i, 2 * i + t);
          recorder.record(thread_count, static_cast<std::uint32_t>(t), i, t + i, i,
                          2 * i + t);  // shared by all
        }
        --running;
      });
    }
    const auto check = [&](const Trace& trace) {
      for (const OperatorEvent& event : trace.events) {
        const auto t = static_cast<std::int64_t>(event.op);
        ASSERT_TRUE(event.track == thread_count || event.track == t);
        ASSERT_EQ(event.iteration, t + event.part);
        ASSERT_EQ(event.begin, event.part);
        ASSERT_EQ(event.end, 2 * event.part + t);
      }
    };
    while (running > 0) check(recorder.trace());
    for (std::thread& thread : threads) thread.join();
    const Trace trace = recorder.trace();
    check(trace);
    const auto shared = std::min<std::size_t>(capacity, static_cast<std::size_t>(thread_count * each));
    EXPECT_EQ(trace.events.size(), static_cast<std::size_t>(thread_count * each) + shared);
    EXPECT_EQ(trace.dropped, static_cast<std::size_t>(thread_count * each) - shared);
  }
}

}  // namespace
}  // namespace purine::trace
