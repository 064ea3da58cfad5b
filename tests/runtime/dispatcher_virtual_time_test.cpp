// Without threads, in virtual time: the same operators in the same order as with a thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "purine/runtime/dispatcher.h"
#include "purine/sim/cores.h"
#include "tests/runtime/random_program.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using sim::Cores;
using sim::VirtualTime;
using Instance = std::tuple<std::uint32_t, std::int64_t, int>;  // operator, iteration, part
using Failing = std::vector<std::pair<std::uint32_t, std::int64_t>>;

bool contains(const Failing& failing, std::uint32_t op, std::int64_t iteration) {
  return std::find(failing.begin(), failing.end(), std::pair(op, iteration)) != failing.end();
}

// Runs on a thread; the first operator waits until all iterations are admitted.
class RealExecutor final : public Executor {
 public:
  RealExecutor(const TestProgram& program, Failing failing)
      : program_(program), failing_(std::move(failing)) {}

  int parts(std::uint32_t op) const override { return program_.operators[op].parts; }
  void run(std::uint32_t op, std::int64_t iteration, int part, int) override {
    {
      std::unique_lock lock(mutex_);
      admitted_.wait(lock, [&] { return is_admitted_; });
    }
    order.emplace_back(op, iteration, part);
    if (contains(failing_, op, iteration)) throw TestFailure("failed");
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_admitted_ = true;
    admitted_.notify_all();
  }

  std::vector<Instance> order;

 private:
  const TestProgram& program_;
  const Failing failing_;
  std::mutex mutex_;
  std::condition_variable admitted_;
  bool is_admitted_ = false;
};

// Takes any time it likes, without running anything.
class VirtualExecutor final : public Executor, private Cores::Listener {
 public:
  VirtualExecutor(const TestProgram& program, Failing failing, VirtualTime& time)
      : program_(program), failing_(std::move(failing)), cores_(time, 1, 1) {}

  int parts(std::uint32_t op) const override { return program_.operators[op].parts; }
  void begin(std::uint32_t op, std::int64_t iteration, int part, int, CompletionListener& listener,
             std::uint64_t tag) override {
    order.emplace_back(op, iteration, part);
    listener_ = &listener;
    tag_ = tag;
    fails_ = contains(failing_, op, iteration);
    cores_.run((op * 7919 + static_cast<std::uint32_t>(part)) % 1000, *this, 0);
  }

  std::vector<Instance> order;

 private:
  void work_done(std::uint64_t) override {
    listener_->completed(tag_, fails_ ? std::make_exception_ptr(TestFailure("failed")) : nullptr);
  }

  const TestProgram& program_;
  const Failing failing_;
  Cores cores_;
  CompletionListener* listener_ = nullptr;
  std::uint64_t tag_ = 0;
  bool fails_ = false;
};

void expect_same_order(const TestProgram& program, int window, const Failing& failing) {
  constexpr std::int64_t iterations = 12;
  const MarkedGraph graph = program.mark();
  RealExecutor real(program, failing);
  {
    Dispatcher dispatcher(graph, real, {Lane::cpu(1)}, {.window = window, .pin_workers = false});
    dispatcher.admit(iterations);
    real.open();
    EXPECT_EQ(dispatcher.drain(), failing.empty());
  }
  VirtualTime time;
  VirtualExecutor simulated(program, failing, time);
  Dispatcher dispatcher(graph, simulated, {Lane::cpu(1)},
                        {.window = window, .clock = &time, .threads = false});
  dispatcher.admit(iterations);
  do {
    dispatcher.issue_ready();
  } while (time.advance());
  EXPECT_EQ(simulated.order, real.order);
  EXPECT_EQ(dispatcher.failure().has_value(), !failing.empty());
  if (failing.empty()) {
    EXPECT_EQ(dispatcher.finished(), iterations);
  }
}

TEST(DispatcherVirtualTimeTest, RandomProgramsFireAsWithAThread) {
  const Watchdog watchdog;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TestProgram program = random_program({.seed = seed, .operators = 40});
    expect_same_order(program, 1 + static_cast<int>(seed % 3), {});
  }
}

TEST(DispatcherVirtualTimeTest, WhatFailsPoisonsTheSame) {
  const Watchdog watchdog;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TestProgram program = random_program({.seed = seed, .operators = 40});
    expect_same_order(program, 2, {{static_cast<std::uint32_t>(seed), 3}});
  }
}

}  // namespace
}  // namespace purine
