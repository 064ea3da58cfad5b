#include "purine/train/planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

TEST(PlannerTest, ASectionHasWhatIsNotAsByDefault) {
  EXPECT_EQ(
      parallel_section_text({.scheme = "data", .devices = "cpu:0-1", .shares = {2, 1}, .all_reduce = "ring"}),
      "[parallel]\nscheme = \"data\"\ndevices = \"cpu:0-1\"\nshares = [2.0, 1.0]\nall_reduce = \"ring\"\n");
}

}  // namespace
}  // namespace purine::train
