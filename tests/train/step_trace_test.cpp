// Traces of real runs: what they say of waiting must be true.
#include "purine/train/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/data/source.h"
#include "purine/models/models.h"
#include "purine/net/in_process_endpoint.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/trace/read_traces.h"
#include "purine/trace/why.h"
#include "tests/support/ranks.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/watchdog.h"

namespace purine::train {
namespace {

constexpr std::int64_t steps = 6;

void build(Graph& graph) {
  const data::Batch batch = data::synthetic(graph, {.batch = 16, .image = {3, 32, 32}, .classes = 10});
  const models::Network network = models::build("small_convnet", batch.image, 10);
  optim::momentum(models::classification_loss(network, batch.label), {.learning_rate = 0.01});
}

/// Trains on the devices of a mesh, at this rank, and writes the traces of all.
void run(const parallel::Mesh& mesh, Endpoint* endpoint, const std::filesystem::path& path) {
  Graph graph;
  build(graph);
  parallel::Partitioned divided = parallel::data_parallel(graph, mesh);
  Runtime runtime({.workers = 2, .devices = divided.mesh().locations(), .endpoint = endpoint});
  StepTrace trace(2, 2 + steps, 64, runtime, {{"model", "small_convnet"}});
  trace.compare_clocks(runtime);
  SessionOptions options;
  options.trace = trace.hook();
  Session session(runtime, divided.graph(), options);
  session.run_steps(2 + steps);
  const StepTrace::Written written = trace.write_all(runtime, path);
  EXPECT_EQ(written.left_out, 0U);
  EXPECT_FALSE(written.error);
}

// What a worker needs has ended when it starts, and a message comes after it was sent. Of queues it is told
// later that work has ended than the device itself knows, so that what follows there may have ended
// meanwhile.
void expect_true(const trace::Timeline& timeline) {
  for (std::size_t rank = 0; rank < timeline.ranks().size(); ++rank) {
    const trace::Trace& trace = timeline.ranks()[rank];
    EXPECT_EQ(trace.dropped, 0U);
    std::size_t checked = 0;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const trace::EventId id{rank, i};
      EXPECT_LE(trace.events[i].begin, timeline.start(id));
      EXPECT_LE(timeline.start(id), trace.events[i].end);
      if (const auto other = timeline.other_end(id)) {
        const trace::EventId receive = timeline.label(id).exchange->sends ? *other : id;
        const trace::EventId send = receive == id ? *other : id;
        EXPECT_LE(timeline.event(send).begin, timeline.event(receive).end);
      } else {
        EXPECT_FALSE(timeline.label(id).exchange) << trace.operators[trace.events[i].op].path;
      }
      for (const trace::Dependency& each : timeline.label(id).after) {
        const auto last = timeline.last_part(rank, each.op, trace.events[i].iteration - each.tokens);
        if (!last) continue;
        ++checked;
        if (timeline.computes()[rank][static_cast<std::size_t>(trace.events[i].track)] != 0 &&
            trace.tracks[static_cast<std::size_t>(trace.events[i].track)].starts_with("worker")) {
          EXPECT_LE(timeline.event(*last).end, trace.events[i].begin) << timeline.label(id).path;
        }
      }
    }
    EXPECT_GT(checked, 100U);
  }
}

void expect_explained(const trace::Timeline& timeline) {
  const trace::CriticalPath path = trace::critical_path(timeline);
  EXPECT_EQ(path.steps, steps - 1);
  std::int64_t at = path.begin;
  for (const trace::Stretch& stretch : path.stretches) {
    EXPECT_EQ(stretch.begin, at);
    at = stretch.end;
  }
  EXPECT_EQ(at, path.end);
  const trace::Explanation explanation = trace::explain(timeline, path);
  EXPECT_TRUE(explanation.has_dependencies);
  EXPECT_GT(explanation.uses[0].share, 0) << "it computes";
  ASSERT_FALSE(explanation.causes.empty());
}

TEST(StepTraceTest, OneProcess) {
  const Watchdog watchdog;
  const test::TemporaryFolder folder;
  run({"cpu:0"}, nullptr, folder / "trace.json");
  const auto traces = trace::read_traces(std::vector<std::filesystem::path>{folder / "trace.json"});
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].tracks, (std::vector<std::string>{"worker 0", "worker 1"}));
  ASSERT_EQ(traces[0].memory.size(), 1U);
  EXPECT_GT(traces[0].memory[0].arena, 0);
  for (const trace::OperatorLabel& label : traces[0].operators) {
    for (const trace::Storage& each : label.outputs) {
      EXPECT_LE(each.offset + (each.slots - 1) * each.stride + each.bytes, traces[0].memory[0].arena);
    }
  }
  const trace::Timeline timeline(traces);
  expect_true(timeline);
  expect_explained(timeline);
}

TEST(StepTraceTest, DevicesWithQueues) {
  const Watchdog watchdog;
  const test::TemporaryFolder folder;
  run({"emu:0", "emu:1"}, nullptr, folder / "trace.json");
  const auto traces = trace::read_traces(std::vector<std::filesystem::path>{folder / "trace.json"});
  ASSERT_EQ(traces.size(), 1U);
  const std::vector<std::string>& tracks = traces[0].tracks;
  for (const std::string name : {"0/emu:0 kernels", "0/emu:1 kernels", "0/emu:0 copies in"}) {
    EXPECT_NE(std::ranges::find(tracks, name), tracks.end()) << name;
  }
  const trace::Timeline timeline(traces);
  expect_true(timeline);
  expect_explained(timeline);
}

TEST(StepTraceTest, SeveralRanks) {
  const Watchdog watchdog;
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "trace.json";
  net::InProcessHub hub(2, {.bytes_per_second = 2e8});
  const auto errors = test::at_ranks(hub, 2, [&](Endpoint& endpoint) {
    run({"0/cpu:0", "1/cpu:0"}, &endpoint, path);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  const auto traces = trace::read_traces(std::vector{path});
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].clock.error, 0);
  EXPECT_GT(traces[1].clock.error, 0);
  const trace::Timeline timeline(traces);
  expect_true(timeline);
  expect_explained(timeline);
}

}  // namespace
}  // namespace purine::train
