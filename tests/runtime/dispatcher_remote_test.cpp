// Remote lanes: work that is done elsewhere, without limit, and ends in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "purine/runtime/dispatcher.h"
#include "tests/runtime/random_program.h"
#include "tests/runtime/test_device.h"
#include "tests/support/error_text.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::text_of_cause;

// Does what it is given on a thread of its own, in random order.
class Elsewhere {
 public:
  explicit Elsewhere(std::uint64_t seed) : state_(seed * 2 + 1), thread_([this] { work(); }) {}
  ~Elsewhere() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    added_.notify_one();
    thread_.join();
  }
  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    added_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      std::swap(tasks_[(state_ >> 33U) % tasks_.size()], tasks_.back());
      const std::function<void()> task = std::move(tasks_.back());
      tasks_.pop_back();
      lock.unlock();
      if (state_ >> 62U == 0) std::this_thread::yield();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::function<void()>> tasks_;
  std::uint64_t state_;
  bool ended_ = false;
  std::thread thread_;
};

class RemoteExecutor final : public CheckingExecutor {
 public:
  RemoteExecutor(const TestProgram& program, Options options)
      : CheckingExecutor(program, options), elsewhere_(options.seed) {}

  void start(std::uint32_t op, std::int64_t iteration, double, CompletionListener& listener,
             std::uint64_t tag) override {
    elsewhere_.add([this, op, iteration, &listener, tag] {
      std::exception_ptr error;
      try {
        run(op, iteration, 0, -1);
      } catch (...) {
        error = std::current_exception();
      }
      listener.completed(tag, error);
    });
  }
  void failed(const Failure& failure) override {
    const std::lock_guard lock(mutex_);
    told_.emplace_back(failure.op, failure.iteration);
  }
  std::vector<std::pair<std::uint32_t, std::int64_t>> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> told_;
  Elsewhere elsewhere_;  // last: its thread uses all of the above
};

class DispatcherRemoteTest : public testing::TestWithParam<int> {
 public:
  DispatcherRemoteTest() : device_(1, 20), queue_(device_.make_queue()) {}

 protected:
  const std::vector<int> kinds_{TestProgram::cpu, TestProgram::remote, 0, TestProgram::remote};
  std::vector<Lane> lanes() {
    return {Lane::cpu(GetParam()), Lane::remote(), Lane::on(*queue_, 2), Lane::remote()};
  }

 private:
  const Watchdog watchdog_;
  TestDevice device_;
  std::unique_ptr<Queue> queue_;
};

INSTANTIATE_TEST_SUITE_P(Workers, DispatcherRemoteTest, testing::Values(1, 2, 4, 16),
                         [](const auto& value) { return std::to_string(value.param) + "_workers"; });

TEST_P(DispatcherRemoteTest, RandomProgramsGiveTheReferencesBits) {
  constexpr std::int64_t iterations = 10;
  bool overlapped = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int window = 1 + static_cast<int>(seed % 3);
    const TestProgram program = random_program({.seed = seed, .operators = 30, .lane_devices = kinds_});
    CheckingExecutor reference(program,
                               {.iterations = iterations, .longest_microseconds = 0, .throwing = {}});
    reference.run_serially(iterations);
    const MarkedGraph graph = program.mark();
    RemoteExecutor executor(program, {.iterations = iterations,
                                      .window = window,
                                      .seed = seed,
                                      .longest_microseconds = seed % 2 == 0 ? 5 : 0,
                                      .throwing = {}});
    DispatcherOptions options{.window = window};
    if (seed % 3 != 0) options.shuffle_seed = seed;
    Dispatcher dispatcher(graph, executor, lanes(), options);
    dispatcher.admit(iterations - 3);
    EXPECT_TRUE(dispatcher.drain());
    dispatcher.admit(iterations);
    EXPECT_TRUE(dispatcher.drain());
    EXPECT_EQ(executor.hazards(), "");
    EXPECT_EQ(executor.results(), reference.results());
    overlapped |= executor.overlapped();
  }
  EXPECT_TRUE(overlapped);
}

// Wherever an operator fails, what depends on it is skipped, on remote lanes too, and the rest ends. The
// executor is told at once.
TEST_P(DispatcherRemoteTest, FailuresPoisonAndDrain) {
  constexpr std::int64_t iterations = 8;
  const TestProgram program = random_program({.seed = 4, .operators = 25, .lane_devices = kinds_});
  const MarkedGraph graph = program.mark();
  for (std::uint32_t failing = 0; failing < 25; ++failing) {
    if (kinds_[program.operators[failing].lane] == 0) continue;  // a failed queue fails all its later work
    SCOPED_TRACE("operator " + std::to_string(failing));
    const std::vector<std::pair<std::uint32_t, std::int64_t>> throwing{{failing, 2}};
    RemoteExecutor executor(program,
                            {.iterations = iterations, .window = 2, .seed = failing, .throwing = throwing});
    Dispatcher dispatcher(graph, executor, lanes(), {.window = 2});
    dispatcher.admit(iterations);
    EXPECT_FALSE(dispatcher.drain());
    ASSERT_TRUE(dispatcher.failure().has_value());
    EXPECT_EQ(dispatcher.failure()->op, failing);
    EXPECT_EQ(dispatcher.failure()->iteration, 2);
    EXPECT_EQ(text_of_cause(dispatcher.failure()->cause), "operator " + std::to_string(failing) + " failed");
    const auto poisoned = program.poisoned(throwing, iterations);
    for (std::int64_t t = 0; t < dispatcher.finished(); ++t) {
      for (std::uint32_t op = 0; op < 25; ++op) {
        EXPECT_EQ(executor.ran(op, t), !poisoned[static_cast<std::size_t>(t)][op])
            << "operator " << op << " in iteration " << t;
      }
    }
    EXPECT_EQ(executor.hazards(), "");
    auto told = executor.told();
    told.erase(std::unique(told.begin(), told.end()), told.end());  // once a part
    EXPECT_EQ(told, throwing);
  }
}

// Keeps what was started until the test completes it.
class Holding final : public Executor {
 public:
  struct Started {
    std::uint32_t op = 0;
    std::int64_t iteration = 0;
    double urgency = 0;
    CompletionListener* listener = nullptr;
    std::uint64_t tag = 0;
  };
  void run(std::uint32_t, std::int64_t, int, int) override { throw std::runtime_error("a kernel failed"); }
  void start(std::uint32_t op, std::int64_t iteration, double urgency, CompletionListener& listener,
             std::uint64_t tag) override {
    const std::lock_guard lock(mutex_);
    started_.push_back({op, iteration, urgency, &listener, tag});
    changed_.notify_all();
  }
  std::vector<Started> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_.size() >= count; });
    return started_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Started> started_;
};

TEST(DispatcherRemoteLaneTest, StartsAllThatIsReadyAndEndsInAnyOrder) {
  const Watchdog watchdog;
  constexpr std::uint32_t count = 1000;
  MarkedGraphBuilder builder(count);
  for (std::uint32_t op = 0; op < count; ++op) builder.set_cost(op, 1e-3);
  const MarkedGraph graph = builder.build([](std::uint32_t) { return "independent"; });
  Holding executor;
  Dispatcher dispatcher(graph, executor, {Lane::remote()}, {.window = 1});
  dispatcher.admit(2);
  std::vector<Holding::Started> started = executor.wait_for(count);
  EXPECT_EQ(dispatcher.unfinished().size(), count);
  std::reverse(started.begin(), started.end());
  for (const Holding::Started& entry : started) entry.listener->completed(entry.tag, nullptr);
  EXPECT_TRUE(dispatcher.wait_for(0));
  EXPECT_EQ(dispatcher.wait_for(1, std::chrono::milliseconds(1)), std::nullopt);
  started = executor.wait_for(2 * count);
  for (std::size_t i = count; i < started.size(); ++i) {
    started[i].listener->completed(started[i].tag, nullptr);
  }
  EXPECT_EQ(dispatcher.wait_for(1, std::chrono::minutes(1)), true);
  EXPECT_TRUE(dispatcher.drain());
}

// a (1 s) before b (2 s), and b before the next a: starts 0 and 1, period 3.
TEST(DispatcherRemoteLaneTest, UrgencyIsTheLatestStartOverAllIterations) {
  const Watchdog watchdog;
  MarkedGraphBuilder builder(2);
  builder.set_cost(0, 1);
  builder.set_cost(1, 2);
  builder.add_edge({0, 1, 0});
  builder.add_edge({1, 0, 1});
  const MarkedGraph graph = builder.build([](std::uint32_t) { return "path"; });
  Holding executor;
  Dispatcher dispatcher(graph, executor, {Lane::remote()});
  dispatcher.admit(2);
  std::vector<double> urgencies;
  for (std::size_t i = 0; i < 4; ++i) {
    const Holding::Started entry = executor.wait_for(i + 1)[i];
    EXPECT_EQ(entry.op, i % 2);
    EXPECT_EQ(entry.iteration, static_cast<std::int64_t>(i / 2));
    urgencies.push_back(entry.urgency);
    entry.listener->completed(entry.tag, nullptr);
  }
  EXPECT_TRUE(dispatcher.drain());
  EXPECT_EQ(urgencies, (std::vector<double>{0, 1, 3, 4}));
}

// What fails elsewhere may be a consequence of what failed here, even if it is told of an earlier operator.
TEST(DispatcherRemoteLaneTest, AFailureElsewhereIsToldOnlyWhereNothingElseFailed) {
  const Watchdog watchdog;
  MarkedGraphBuilder builder(2);
  builder.set_lane(1, 1);
  const MarkedGraph graph = builder.build([](std::uint32_t) { return "path"; });
  const auto lost = std::make_exception_ptr(std::runtime_error("the other one is gone"));
  Holding executor;
  Dispatcher dispatcher(graph, executor, {Lane::remote(), Lane::cpu(1)});
  dispatcher.admit(1);
  const Holding::Started first = executor.wait_for(1)[0];
  first.listener->completed(first.tag, lost);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(dispatcher.failure()->op, 1U);
  EXPECT_EQ(text_of_cause(dispatcher.failure()->cause), "a kernel failed");
}

TEST(DispatcherRemoteLaneTest, AnExecutorWithoutRemoteOperatorsSaysSo) {
  const Watchdog watchdog;
  const MarkedGraph graph = MarkedGraphBuilder(1).build([](std::uint32_t) { return "path"; });
  class OnCpu final : public Executor {
    void run(std::uint32_t, std::int64_t, int, int) override {}
  } executor;
  Dispatcher dispatcher(graph, executor, {Lane::remote()});
  dispatcher.admit(1);
  EXPECT_FALSE(dispatcher.drain());
  EXPECT_EQ(text_of_cause(dispatcher.failure()->cause),
            "[dispatcher] operator 0 runs elsewhere, and its executor has no way");
}

}  // namespace
}  // namespace purine
