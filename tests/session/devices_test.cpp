#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/session/session.h"
#include "tests/support/mix_operator.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::mix;

TEST(ParseDevicesTest, ReadsListsAndRanges) {
  const auto text = [](std::string_view list) {
    std::string joined;
    for (const Location& location : parse_devices(list)) joined += location.text() + " ";
    return joined;
  };
  EXPECT_EQ(text("cpu:0"), "0/cpu:0 ");
  EXPECT_EQ(text("cpu:0,cpu:1"), "0/cpu:0 0/cpu:1 ");
  EXPECT_EQ(text("emu:0-3"), "0/emu:0 0/emu:1 0/emu:2 0/emu:3 ");
  EXPECT_EQ(text("cpu:1,emu:2-2,emu:7"), "0/cpu:1 0/emu:2 0/emu:7 ");
}

TEST(ParseDevicesTest, RefusesWhatIsNone) {
  for (const char* text : {"", "cpu", "cpu:0,", ",cpu:0", "emu:3-1", "emu:0-", "emu:-1", "emu:0-x", "gpu:0",
                           "emu:0-2-3", "emu:0,emu:0", "emu:0-3,emu:2", "emu:0-99999"}) {
    EXPECT_THROW(parse_devices(text), Error) << text;
  }
}

TEST(RuntimeTest, SharesItsWorkersAmongItsCpus) {
  const Runtime runtime({.workers = 5, .devices = parse_devices("cpu:0-1,emu:0")});
  EXPECT_EQ(runtime.workers(), 5);
  EXPECT_EQ(runtime.workers_of({0, DeviceKind::cpu, 0}) + runtime.workers_of({0, DeviceKind::cpu, 1}), 5);
  EXPECT_TRUE(runtime.has({0, DeviceKind::emu, 0}));
  EXPECT_FALSE(runtime.has({0, DeviceKind::emu, 1}));
  EXPECT_THROW(Runtime({.devices = {{0, DeviceKind::cuda, 0}}}), Error);
}

TEST(SessionDevicesTest, SaysWhichDeviceIsMissing) {
  Runtime runtime({.workers = 1});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  const auto placement = graph.at({0, DeviceKind::emu, 4});
  graph.watch(mix(graph, {}, {}).output());
  try {
    const Session session(runtime, graph);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[session] the graph uses 0/emu:4, which the runtime doesn't have; hint: name it in "
                 "RuntimeOptions::devices, or --devices");
  }
}

TEST(SessionDevicesTest, AFailureOnADeviceIsReportedWithItsPlace) {
  Runtime runtime({.workers = 2, .devices = parse_devices("emu:0-1")});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  Tensor x;
  {
    const auto placement = graph.at({0, DeviceKind::emu, 1});
    x = mix(graph, {}, {.salt = 1, .throws_at = 3}).output();
  }
  graph.watch(mix(graph, {ops::copy(x, Location{})}, {.salt = 2}).output());
  Session session(runtime, graph);
  std::string text;
  std::int64_t steps = 0;
  try {
    for (const Step& step : session.run({.steps = 10})) steps = step.index + 1;
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(text, "[mix] mix on 0/emu:1: was told to fail (iteration 3)");
}

/// The only worker issues what all devices do, and goes on: their kernels end when it has run an operator of
/// its own, which comes last.
TEST(SessionDevicesTest, TheOnlyWorkerWaitsForNoDevice) {
  const Watchdog watchdog;
  constexpr int devices = 12;
  constexpr std::int64_t host = 99;  // the salt of the worker's operator
  constexpr std::int64_t steps = 3;
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t begun = 0;  // kernels of devices
  std::int64_t ran = 0;    // operators of the worker
  Runtime runtime(
      {.workers = 1, .devices = parse_devices("emu:0-11"), .emulated = {.memory = std::size_t{1} << 20U}});
  runtime.cpu_kernels().add("mix", [&](const BindContext& context) {
    const bool is_host = context.as<test::Mix>().options().salt == host;
    const bool is_end = !context.inputs.empty();
    return make_kernel([&, is_host, is_end](const KernelCall& call) {
      *call.output<std::int64_t>(0) = call.iteration;
      if (is_end) return;
      std::unique_lock lock(mutex);
      (is_host ? ran : begun) += 1;
      changed.notify_all();
      const std::int64_t turn = call.iteration + 1;
      const bool met = changed.wait_for(lock, std::chrono::seconds(30),
                                        [&] { return is_host ? begun == turn * devices : ran >= turn; });
      if (!met) throw Error("mix", is_host ? "a device has not begun" : "the worker does not come");
    });
  });
  Graph graph;
  std::vector<Tensor> ends;
  for (int device = 0; device < devices; ++device) {
    const auto placement = graph.at({0, DeviceKind::emu, device});
    ends.push_back(mix(graph, {}, {.salt = device}).output());
  }
  for (Tensor& end : ends) end = ops::copy(end, Location{});
  ends.push_back(mix(graph, {}, {.salt = host}).output());
  graph.watch(mix(graph, ends, {}).output());
  Session session(runtime, graph, {.window = 1});
  session.run_steps(steps);
  session.drain();
  EXPECT_EQ(ran, steps);
  EXPECT_EQ(begun, steps * devices);
}

/// Twelve devices with a chain of short operators each: operators are issued before the one that they follow
/// is done.
TEST(SessionDevicesTest, LaunchesAheadOnTwelveDevices) {
  constexpr int devices = 12;
  constexpr int length = 8;
  Runtime runtime(
      {.workers = 2, .devices = parse_devices("emu:0-11"), .emulated = {.memory = std::size_t{1} << 20U}});
  test::register_mix(runtime.cpu_kernels());
  Graph graph;
  std::vector<Tensor> ends;
  for (int device = 0; device < devices; ++device) {
    const auto placement = graph.at({0, DeviceKind::emu, device});
    const auto scope = graph.scope("device_" + std::to_string(device));
    Tensor x = mix(graph, {}, {.salt = device}).output();
    for (int i = 1; i < length; ++i) x = mix(graph, {x}, {.salt = i, .microseconds = 500}).output();
    ends.push_back(x);
  }
  for (Tensor& end : ends) end = ops::copy(end, Location{});
  graph.watch(mix(graph, ends, {}).output());

  std::mutex mutex;
  std::vector<RanEvent> events;
  Session session(runtime, graph, {.trace = [&](const RanEvent& event) {
                    const std::lock_guard lock(mutex);
                    events.push_back(event);
                  }});
  session.run_steps(5);

  std::map<std::string, std::map<std::int64_t, RanEvent>> by_path;
  for (const RanEvent& event : events) by_path[session.program().path(event.op)][event.iteration] = event;
  for (int device = 0; device < devices; ++device) {
    int ahead = 0;
    for (int i = 2; i < length; ++i) {
      const std::string scope = "device_" + std::to_string(device) + "/mix";
      const auto& before = by_path.at(i == 2 ? scope + "_2" : scope + "_" + std::to_string(i));
      const auto& after = by_path.at(scope + "_" + std::to_string(i + 1));
      for (const auto& [iteration, event] : after) ahead += event.begin < before.at(iteration).end;
    }
    EXPECT_GT(ahead, 0) << "device " << device;
  }
}

}  // namespace
}  // namespace purine
