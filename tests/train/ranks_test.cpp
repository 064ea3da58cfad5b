// Training over several ranks, here as threads, against one process.
#include "tests/support/ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "purine/io/checkpoint.h"
#include "purine/net/in_process_endpoint.h"
#include "purine/trace/chrome_trace.h"
#include "purine/train/job_file.h"
#include "purine/train/parallel_section.h"
#include "purine/train/trainer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/watchdog.h"
#include "tests/train/image_set.h"

namespace purine::train {
namespace {

using test::at_ranks;

/// Keeps what it is told, and asks for a stop after a step.
class RankRecorder final : public Listener {
 public:
  void step(const StepReport& report) override {
    losses[report.step] = report.loss;
    if (report.step == stop_at) stop.request_stop();
  }
  void evaluated(const EvaluationReport& report) override { test_loss = report.loss; }

  std::map<std::int64_t, double> losses;
  double test_loss = 0;
  std::int64_t stop_at = -1;
  std::stop_source stop;
};

struct RankOptions {
  std::string parallel = {};
  bool resume = false;
  std::int64_t stop_after = 0;
  std::int64_t stop_at = -1;  ///< rank 0 is asked to stop after this step
  int ranks = 1;
};

/// Jobs of 10 steps over 21 images in batches of 4: the last of an epoch has 1.
class TrainRanksTest : public testing::Test {
 protected:
  TrainRanksTest() { test::write_idx_set(folder_ / "set", 21, 10); }

  LoadedJob load(const std::string& run, const std::string& parallel) {
    return parse_job(fmt::format("[model]\nname = \"lenet\"\n[data]\nfolder = \"{}\"\nbatch = 4\n"
                                 "[optimizer]\nname = \"momentum\"\nlearning_rate = 0.01\n"
                                 "[train]\nsteps = 10\nrun_folder = \"{}\"\n[parallel]\n{}",
                                 (folder_ / "set").string(), (folder_ / run).string(), parallel),
                     "job.toml");
  }
  EndReport run(const std::string& name, const RankOptions& options, RankRecorder* recorder = nullptr) {
    const LoadedJob job = load(name, options.parallel);
    EndReport first;
    std::vector<RunEnd> ends(static_cast<std::size_t>(options.ranks));
    const auto train = [&](Endpoint* endpoint) {
      const int rank = endpoint != nullptr ? endpoint->rank() : 0;
      Runtime runtime(
          {.workers = 1, .devices = parallel_setup(job, options.ranks).devices(), .endpoint = endpoint});
      RankRecorder own;
      own.stop_at = options.stop_at;
      Trainer trainer(
          runtime, job,
          {.resume = options.resume, .stop_after = options.stop_after, .stop = own.stop.get_token()});
      if (rank == 0) trainer.add(own);
      const EndReport report = trainer.run();
      ends[static_cast<std::size_t>(rank)] = report.end;
      if (rank != 0) return;
      first = report;
      if (recorder != nullptr) {
        recorder->losses = own.losses;
        recorder->test_loss = own.test_loss;
      }
    };
    if (options.ranks == 1) {
      train(nullptr);
      return first;
    }
    net::InProcessHub hub(options.ranks, {.shuffle_seed = 5});
    for (const std::string& error :
         at_ranks(hub, options.ranks, [&](Endpoint& endpoint) { train(&endpoint); })) {
      EXPECT_EQ(error, "");
    }
    EXPECT_EQ(ends, std::vector<RunEnd>(ends.size(), first.end)) << "all ranks end alike";
    return first;
  }
  io::Checkpoint last(const std::string& name) {
    return io::load_latest_checkpoint(folder_ / name / "checkpoints").checkpoint;
  }
  void expect_same(const std::string& one, const std::string& other) {
    EXPECT_EQ(last(one).manifest, last(other).manifest);
    EXPECT_EQ(last(one).tensors, last(other).tensors);
  }
  double difference(const std::string& one, const std::string& other) {
    const io::Checkpoint left = last(one);
    const io::Checkpoint right = last(other);
    EXPECT_EQ(left.tensors.size(), right.tensors.size());
    EXPECT_EQ(left.manifest.iteration, right.manifest.iteration);
    double largest = 0;
    for (std::size_t i = 0; i < left.tensors.size(); ++i) {
      EXPECT_EQ(left.tensors[i].name, right.tensors[i].name);
      const auto a = left.tensors[i].values<float>();
      const auto b = right.tensors[i].values<float>();
      for (std::size_t k = 0; k < a.size(); ++k)
        largest = std::max(largest, static_cast<double>(std::abs(a[k] - b[k])));
    }
    return largest;
  }

  Watchdog watchdog_{nullptr, std::chrono::seconds(120)};
  test::TemporaryFolder folder_;
};

const std::map<std::string, std::string>& sections() {
  static const std::map<std::string, std::string> all = {
      {"default", ""},
      {"ring", "all_reduce = \"ring\"\n"},
      {"sharded", "scheme = \"sharded\"\n"},
      {"tensor", "scheme = \"tensor\"\n"},
      {"hybrid", "scheme = \"hybrid\"\ndevices = \"emu:0-1\"\nmesh = \"data=2,model=2\"\n"},
      {"pipeline", "scheme = \"pipeline\"\nmicro_batches = 2\n"},
      {"backwards", "devices = \"1/cpu:0,0/cpu:0\"\nscheme = \"pipeline\"\n"},
  };
  return all;
}

TEST_F(TrainRanksTest, TheEndTellsWhatASimulationOfItSays) {
  int runs = 0;
  for (const char* section : {"", "scheme = \"sharded\"\n", "devices = \"cpu:0-1\"\n"}) {
    SCOPED_TRACE(section);
    const EndReport report = run("run" + std::to_string(runs++), {.parallel = section, .ranks = 2});
    ASSERT_TRUE(report.prediction);
    const RunPrediction& prediction = *report.prediction;
    EXPECT_NEAR(prediction.measured_step_seconds,
                4 * report.training_seconds / static_cast<double>(report.trained_images), 1e-9);
    EXPECT_GT(prediction.predicted_step_seconds, 0);
    EXPECT_NEAR(prediction.speed_up,
                4 / prediction.measured_step_seconds / prediction.one_device_images_per_second, 1e-9);
    EXPECT_NEAR(prediction.efficiency, prediction.speed_up / report.devices, 1e-12);
  }
  EXPECT_FALSE(run("one", {}).prediction);
  EXPECT_FALSE(run("other", {.parallel = "devices = \"emu:0\"\n", .ranks = 2}).prediction);
}

TEST_F(TrainRanksTest, AnySchemeOverTwoRanksTrainsAsOneProcessDoes) {
  RankRecorder one;
  run("one", {}, &one);
  ASSERT_EQ(one.losses.size(), 10u);
  for (const auto& [name, section] : sections()) {
    SCOPED_TRACE(name);
    RankRecorder two;
    run(name, {.parallel = section, .ranks = 2}, &two);
    EXPECT_LE(difference("one", name), 1e-6);
    ASSERT_EQ(two.losses.size(), 10u);
    for (const auto& [step, loss] : one.losses) EXPECT_NEAR(two.losses[step], loss, 1e-5) << step;
    EXPECT_NEAR(two.test_loss, one.test_loss, 1e-5);
  }
}

TEST_F(TrainRanksTest, ARunGoesOnAtAnotherNumberOfRanks) {
  run("one", {});
  run("moved", {.stop_after = 3, .ranks = 2});
  EXPECT_EQ(run("moved", {.resume = true, .stop_after = 6, .ranks = 4}).trained_steps, 3);
  EXPECT_EQ(run("moved", {.resume = true, .stop_after = 8}).trained_steps, 2);
  EXPECT_EQ(run("moved", {.parallel = "scheme = \"sharded\"\n", .resume = true, .ranks = 3}).trained_steps,
            2);
  EXPECT_LE(difference("one", "moved"), 1e-6);
}

TEST_F(TrainRanksTest, AResumedRunHasTheBytesOfOneThatWentThrough) {
  for (const auto& [name, section] : sections()) {
    SCOPED_TRACE(name);
    run(name, {.parallel = section, .ranks = 2});
    run(name + "-again", {.parallel = section, .stop_after = 4, .ranks = 2});
    run(name + "-again", {.parallel = section, .resume = true, .ranks = 2});
    expect_same(name, name + "-again");
  }
}

TEST_F(TrainRanksTest, EachRankHasATraceInTheRunFolder) {
  const EndReport report = run("run", {.parallel = "[trace]\nsteps = 3\nfirst_step = 2\n", .ranks = 2});
  EXPECT_EQ(report.trace, folder_ / "run" / "trace.json");
  for (const int rank : {0, 1}) {
    const trace::Trace trace =
        trace::read_chrome_trace(folder_ / "run" / (rank == 0 ? "trace.json" : "trace.rank1.json"));
    EXPECT_EQ(trace.rank, rank);
    std::size_t sends = 0;
    std::map<int, std::int64_t> free_from;  // by track
    for (const trace::OperatorEvent& event : trace.events) {
      EXPECT_GE(event.iteration, 2);
      EXPECT_LT(event.iteration, 5);
      const bool sent = trace.tracks[static_cast<std::size_t>(event.track)].starts_with("sends ");
      EXPECT_EQ(sent, trace.operators[event.op].type == "send");
      sends += sent;
      if (!sent) continue;
      EXPECT_GE(event.begin, free_from[event.track]) << "sends of one track don't overlap";
      free_from[event.track] = event.end;
    }
    EXPECT_GT(sends, 10u);
  }
  ASSERT_EQ(report.ranks.size(), 2u);
  for (const RankReport& rank : report.ranks) {
    EXPECT_GT(rank.transfers.bytes_sent, 0);
    EXPECT_GT(rank.transfers.computing, 0);
    EXPECT_LE(rank.transfers.overlapped, rank.transfers.busy);
  }
}

TEST_F(TrainRanksTest, AStopAtOneRankEndsAllAfterTheSameStep) {
  run("whole", {.ranks = 3});
  const EndReport report = run("run", {.stop_at = 2, .ranks = 3});
  EXPECT_EQ(report.end, RunEnd::interrupted);
  EXPECT_EQ(last("run").manifest.iteration, report.step);
  EXPECT_EQ(run("run", {.resume = true, .ranks = 3}).end, RunEnd::finished);
  expect_same("run", "whole");
}

TEST_F(TrainRanksTest, RanksWithOtherJobsAreToldWhatDiffers) {
  net::InProcessHub hub(3);
  const std::vector<std::string> errors = at_ranks(hub, 3, [&](Endpoint& endpoint) {
    LoadedJob job = load("run", "");
    if (endpoint.rank() == 2) job.job.optimizer.learning_rate = 0.5;
    Runtime runtime({.workers = 1, .devices = parallel_setup(job, 3).devices(), .endpoint = &endpoint});
    Trainer trainer(runtime, job, {});
  });
  EXPECT_EQ(errors, std::vector<std::string>(
                        3,
                        "[job] rank 0 has optimizer.learning_rate = 0.01, rank 2 has "
                        "optimizer.learning_rate = 0.5; hint: start all processes with the same job"));
}

TEST_F(TrainRanksTest, ADataSetThatIsMissingAtOneRankEndsAllBeforeTheFirstStep) {
  net::InProcessHub hub(2);
  const std::vector<std::string> errors = at_ranks(hub, 2, [&](Endpoint& endpoint) {
    LoadedJob job = load("run", "");
    if (endpoint.rank() == 1) job.job.data.folder = (folder_ / "nowhere").string();
    Runtime runtime({.workers = 1, .devices = parallel_setup(job, 2).devices(), .endpoint = &endpoint});
    Trainer trainer(runtime, job, {});
  });
  EXPECT_EQ(errors[0].find("[rank 1] at " + hub.endpoint(1).host(1) + ", [job] data.folder"), 0u)
      << errors[0];
  EXPECT_NE(errors[0].find("nowhere"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1].find("[job] job.toml:4: data.folder"), 0u) << errors[1];
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace purine::train
