#include "purine/train/planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "purine/train/parallel_section.h"

namespace purine::train {
namespace {

LoadedJob job_of(const std::string& model, int batch) {
  const std::string text =
      fmt::format("[model]\nname = \"{}\"\n[data]\nfolder = \"none\"\nbatch = {}\n", model, batch);
  return parse_job(text, model);
}

// Hosts with a core each, or with a GPU each.
sim::Cluster cpus(int hosts, double gbit) {
  return sim::parse_cluster(
      fmt::format(
          "[cpu.c]\ncores = 1\nf32_gflops = 100\nmemory_gb_per_s = 10\nmemory_gib = 16\n"
          "[card.e]\ngbit_per_s = {}\nlatency_us = 50\n[[host]]\ncount = {}\ncpu = \"c\"\ncard = \"e\"\n",
          gbit, hosts),
      "cpus");
}

std::vector<PlannedRun> plans(const LoadedJob& job, const sim::Cluster& cluster) {
  return plan(job, images_of_model(job), cluster, {.simulation = {.warm_up = 1, .steps = 2}});
}

const PlannedRun& find(const std::vector<PlannedRun>& runs, const std::string& text) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const PlannedRun& run) { return run.text.starts_with(text); });
  EXPECT_NE(found, runs.end()) << text;
  return *found;
}

TEST(PlannerTest, AlexNetOnSlowLinksPrefersTheHybrid) {
  const auto runs = plans(job_of("alexnet", 64), cpus(2, 1));
  EXPECT_EQ(runs.front().parallel.scheme, "hybrid") << runs.front().text;
  EXPECT_LT(runs.front().bytes_sent, find(runs, "data on").bytes_sent / 2);
}

TEST(PlannerTest, PlainDataParallelismIsAlwaysAmongThem) {
  for (const char* model : {"lenet", "small_convnet"}) {
    const auto runs = plans(job_of(model, 64), cpus(3, 10));
    EXPECT_LE(runs.front().step_seconds, find(runs, "data on").step_seconds);
    EXPECT_LE(runs.front().step_seconds, find(runs, "single on").step_seconds);
    EXPECT_TRUE(std::is_sorted(runs.begin(), runs.end(), [](const PlannedRun& a, const PlannedRun& b) {
      return a.obstacle.empty() && b.obstacle.empty() && a.step_seconds < b.step_seconds;
    }));
  }
}

TEST(PlannerTest, OneDeviceWhereTheNetworkCannotPay) {
  // Two images take far less than the 0.8 s of ResNet-50's gradients. A pipeline sends activations alone.
  const auto runs = plans(job_of("resnet50", 2), cpus(2, 1));
  EXPECT_GT(find(runs, "data on").step_seconds, 0.8);
  for (const PlannedRun& run : runs) {
    if (run.parallel.scheme != "data" && run.parallel.scheme != "sharded") continue;
    EXPECT_GT(run.step_seconds, find(runs, "single on").step_seconds) << run.text;
  }
  EXPECT_EQ(plans(job_of("resnet50", 2), cpus(2, 0.05)).front().parallel.scheme, "single");
}

TEST(PlannerTest, AModelThatIsTooLargeForOneDeviceIsSplit) {
  const sim::Cluster cluster = sim::parse_cluster(
      "[cpu.c]\ncores = 4\nf32_gflops = 100\nmemory_gb_per_s = 10\nmemory_gib = 64\n"
      "[gpu.small]\nf32_gflops = 4000\nmemory_gb_per_s = 200\nmemory_gib = 1.2\nin_gb_per_s = "
      "10\nout_gb_per_s = 10\n"
      "[card.e]\ngbit_per_s = 10\n[[host]]\ncpu = \"c\"\ncard = \"e\"\ngpus = [\"4 x small\"]\n",
      "small");
  const auto runs = plans(job_of("vgg16", 4), cluster);
  EXPECT_NE(find(runs, "single on").obstacle, "");
  EXPECT_NE(find(runs, "data on").obstacle, "");
  EXPECT_EQ(runs.front().obstacle, "") << runs.front().text;
  EXPECT_LE(runs.front().peak_bytes, std::size_t{1288490188});
}

TEST(PlannerTest, UnequalDevicesGetUnequalShares) {
  const sim::Cluster cluster = sim::parse_cluster(
      "[cpu.fast]\ncores = 1\nf32_gflops = 100\nmemory_gb_per_s = 30\nmemory_gib = 16\n"
      "[cpu.slow]\ncores = 1\nf32_gflops = 50\nmemory_gb_per_s = 15\nmemory_gib = 16\n"
      "[card.e]\ngbit_per_s = 100\n[[host]]\ncpu = \"fast\"\ncard = \"e\"\n[[host]]\ncpu = \"slow\"\ncard = "
      "\"e\"\n",
      "unequal");
  const auto runs = plans(job_of("small_convnet", 96), cluster);
  EXPECT_EQ(runs.front().parallel.shares, std::vector<double>({32, 16})) << runs.front().text;
  EXPECT_LT(runs.front().step_seconds, 0.8 * find(runs, "data on").step_seconds);
}

double step_of(const LoadedJob& job, const sim::Cluster& cluster, Job::Parallel parallel) {
  LoadedJob changed = job;
  parallel.devices = devices_text(cluster.devices());
  changed.job.parallel = std::move(parallel);
  return simulate(changed, images_of_model(job), cluster,
                  {.simulation = {.warm_up = 1, .steps = 2}, .against_one_device = false})
      .result.step_seconds;
}

double best_of(const std::vector<PlannedRun>& runs, const std::string& scheme) {
  return std::find_if(runs.begin(), runs.end(),
                      [&](const PlannedRun& run) { return run.parallel.scheme == scheme; })
      ->step_seconds;
}

// Against all ways to divide AlexNet's three layers: each not at all, by output, or by input.
TEST(PlannerTest, TheHybridDividesTheLayersThatPay) {
  const std::vector<std::string> layers = {"alexnet/fc6", "alexnet/fc7", "alexnet/fc8"};
  const LoadedJob job = job_of("alexnet", 64);
  const sim::Cluster cluster = cpus(2, 1);
  const double best = best_of(plans(job, cluster), "hybrid");
  for (int way = 1; way < 27; ++way) {
    Job::Parallel parallel{.scheme = "hybrid"};
    int digits = way;
    for (const std::string& layer : layers) {
      if (digits % 3 == 1) parallel.output_layers.push_back(layer);
      if (digits % 3 == 2) parallel.input_layers.push_back(layer);
      digits /= 3;
    }
    EXPECT_LE(best, 1.005 * step_of(job, cluster, parallel)) << way;
  }
}

// Against all cuts of a network into two stages, of which one runs on a host that is a third as fast.
TEST(PlannerTest, StagesAreCutWhereItPays) {
  const sim::Cluster cluster = sim::parse_cluster(
      "[cpu.fast]\ncores = 1\nf32_gflops = 90\nmemory_gb_per_s = 30\nmemory_gib = 16\n"
      "[cpu.slow]\ncores = 1\nf32_gflops = 30\nmemory_gb_per_s = 10\nmemory_gib = 16\n"
      "[card.e]\ngbit_per_s = 100\n[[host]]\ncpu = \"fast\"\ncard = \"e\"\n[[host]]\ncpu = \"slow\"\ncard = "
      "\"e\"\n",
      "unequal");
  const LoadedJob job = job_of("small_convnet", 64);
  const auto runs = plans(job, cluster);
  const double best = best_of(runs, "pipeline");
  const std::int64_t micro_batches = find(runs, "pipeline").parallel.micro_batches;
  double least = best_of(runs, "single");
  double even = 0;
  for (double share = 1; share <= 256; share *= 1.1) {
    const double seconds = step_of(
        job, cluster,
        {.scheme = "pipeline", .micro_batches = micro_batches, .stage_shares = {16 * share / 16, 16}});
    least = std::min(least, seconds);
    if (even == 0) even = step_of(job, cluster, {.scheme = "pipeline", .micro_batches = micro_batches});
  }
  EXPECT_LE(best, 1.02 * least);
  EXPECT_LT(best, 0.8 * even);
}

// Grids have parts of a host's devices as one axis, or whole hosts.
TEST(PlannerTest, MeshesHaveGroupsOfNeighbours) {
  const auto host = [](int count, int gpus) {
    return fmt::format(
        "[cpu.c]\ncores = 4\nf32_gflops = 100\nmemory_gb_per_s = 10\nmemory_gib = 64\n"
        "[gpu.g]\nf32_gflops = 4000\nmemory_gb_per_s = 200\nmemory_gib = 8\nin_gb_per_s = 10\nout_gb_per_s = "
        "10\n"
        "[card.e]\ngbit_per_s = 10\n[[host]]\ncount = {}\ncpu = \"c\"\ncard = \"e\"\ngpus = [\"{} x g\"]\n",
        count, gpus);
  };
  const auto meshes = [&](int count, int gpus) {
    std::set<std::string> found;
    for (const PlannedRun& run : plans(job_of("lenet", 64), sim::parse_cluster(host(count, gpus), "grid"))) {
      if (!run.parallel.mesh.empty()) found.insert(run.parallel.mesh);
    }
    return found;
  };
  using Meshes = std::set<std::string>;
  EXPECT_EQ(meshes(1, 4), (Meshes{"data=2,model=2", "data=2,stage=2"}));
  EXPECT_EQ(meshes(2, 3), (Meshes{"data=2,model=3", "data=2,stage=3"}));
  EXPECT_EQ(meshes(4, 1), (Meshes{"data=2,model=2", "data=2,stage=2"}));
  EXPECT_EQ(meshes(1, 3), Meshes{});
}

// Where messages take long to arrive, few large ones are the better.
TEST(PlannerTest, SlowMessagesAskForLargeBuckets) {
  const sim::Cluster cluster = sim::parse_cluster(
      "[cpu.c]\ncores = 1\nf32_gflops = 100\nmemory_gb_per_s = 10\nmemory_gib = 16\n"
      "[card.e]\ngbit_per_s = 10\nmessage_us = 2000\n[[host]]\ncount = 2\ncpu = \"c\"\ncard = \"e\"\n",
      "slow messages");
  const LoadedJob job = job_of("small_convnet", 32);
  const auto runs = plans(job, cluster);
  const PlannedRun& data = find(runs, "data on");
  EXPECT_LT(best_of(runs, "data"), step_of(job, cluster, {.scheme = "data", .bucket_kib = 0}));
  EXPECT_LE(best_of(runs, "data"), data.step_seconds);
}

TEST(PlannerTest, ASectionHasWhatIsNotAsByDefault) {
  EXPECT_EQ(
      parallel_section_text({.scheme = "data", .devices = "cpu:0-1", .shares = {2, 1}, .all_reduce = "ring"}),
      "[parallel]\nscheme = \"data\"\ndevices = \"cpu:0-1\"\nshares = [2.0, 1.0]\nall_reduce = \"ring\"\n");
}

}  // namespace
}  // namespace purine::train
