#include "purine/sim/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/error_text.h"

namespace purine::sim {
namespace {

const std::string cpu_text = "[cpu.c]\ncores = 4\nf32_gflops = 50\nmemory_gb_per_s = 10\nmemory_gib = 2\n";
const std::string gpu_text =
    "[gpu.g]\nf32_gflops = 4000\nreached = 0.5\nmemory_gb_per_s = 250\nmemory_gib = 6\nlaunch_us = 7\n"
    "in_gb_per_s = 11\nout_gb_per_s = 12\n";
const std::string card_text = "[card.e]\ngbit_per_s = 10\nlatency_us = 30\nmessage_us = 2\n";
const std::string host_text = "[[host]]\ncpu = \"c\"\ncard = \"e\"\n";

std::string error_of(const std::string& text) {
  return test::error_text([&] { parse_cluster(text, "a.toml"); });
}

TEST(ClusterTest, ReadsHostsOfSeveralKinds) {
  const Cluster cluster = parse_cluster("name = \"mixed\"\n" + cpu_text + gpu_text + card_text +
                                            "[switch]\ngbit_per_s = 40\nlatency_us = 1\n" + host_text +
                                            "count = 2\ngpus = [\"2 x g\", \"g\"]\n" + host_text,
                                        "a.toml");
  EXPECT_EQ(cluster.name, "mixed");
  ASSERT_EQ(cluster.hosts.size(), 3U);
  EXPECT_EQ(cluster.hosts[1].gpus.size(), 3U);
  EXPECT_TRUE(cluster.hosts[2].gpus.empty());
  const Gpu& one = cluster.hosts[0].gpus[2];
  EXPECT_EQ(one.processor.f32_operations, 4e12);
  EXPECT_EQ(one.memory_bytes, std::size_t{6} << 30U);
  EXPECT_NEAR(one.processor.start_seconds, 7e-6, 1e-15);
  EXPECT_EQ(one.out_bytes_per_second, 12e9);
  EXPECT_EQ(cluster.hosts[0].card.bytes_per_second, 1.25e9);
  EXPECT_EQ(cluster.network_switch.bytes_per_second, 5e9);
  EXPECT_EQ(cluster.devices().size(), 6U);
  EXPECT_TRUE(cluster.has({1, DeviceKind::sim, 2}));
  EXPECT_FALSE(cluster.has({2, DeviceKind::sim, 0}));
  EXPECT_TRUE(cluster.has({2, DeviceKind::cpu, 3}));
  EXPECT_FALSE(cluster.has({3, DeviceKind::cpu, 0}));
}

TEST(ClusterTest, WithoutAcceleratorsTheDevicesAreTheHosts) {
  const Cluster cluster = parse_cluster(cpu_text + card_text + host_text + "count = 2\n", "a.toml");
  EXPECT_EQ(cluster.devices(), std::vector<Location>({{0, DeviceKind::cpu, 0}, {1, DeviceKind::cpu, 0}}));
  EXPECT_EQ(cluster.name, "a.toml");
}

TEST(ClusterTest, TheRooflineIsWhatTakesLonger) {
  const Cluster cluster =
      parse_cluster(cpu_text + gpu_text + card_text + host_text + "gpus = \"g\"\n", "a.toml");
  const Processor& processor = cluster.hosts[0].gpus[0].processor;
  EXPECT_DOUBLE_EQ(processor.seconds({2e12, 1e9}, DType::f32), 1);
  EXPECT_DOUBLE_EQ(processor.seconds({2e12, 1e9}, DType::f64), 2);
  EXPECT_DOUBLE_EQ(processor.seconds({2e9, 250e9}, DType::f32), 1);
}

TEST(ClusterTest, MistakesAreToldAtTheirLine) {
  EXPECT_EQ(error_of("[cpu"),
            "[cluster] a.toml:1: not TOML: Error while parsing table header: encountered end-of-file");
  EXPECT_EQ(error_of(cpu_text + card_text),
            "[cluster] a.toml: has no host; hint: add [[host]] with a cpu and a card");
  EXPECT_EQ(error_of("[cpus.c]\n"), "[cluster] a.toml:1: unknown section [cpus]; hint: did you mean 'cpu'?");
  EXPECT_EQ(error_of("[cpu]\ncores = 2\n"),
            "[cluster] a.toml:2: 'cores' is in [cpu], which has no name; hint: write [cpu.NAME]");
  EXPECT_EQ(error_of(cpu_text + "core = 2\n"),
            "[cluster] a.toml:6: unknown key 'core' in [cpu.c]; hint: did you mean 'cores'?");
  EXPECT_EQ(error_of("[card.e]\nlatency_us = 3\n"), "[cluster] a.toml:1: [card.e] has no gbit_per_s");
  EXPECT_EQ(error_of("[card.e]\ngbit_per_s = \"1\"\n"),
            "[cluster] a.toml:2: gbit_per_s must be a number; hint: leave the quotes out");
  EXPECT_EQ(error_of("[cpu.c]\ncores = 1.5\n"),
            "[cluster] a.toml:2: cores must be a whole number from 1 to 4096, got 1.5");
  EXPECT_EQ(error_of(cpu_text + card_text + "[host]\ncpu = \"c\"\n"),
            "[cluster] a.toml:10: [host] is a list of hosts; hint: write [[host]]");
  EXPECT_EQ(error_of(cpu_text + card_text + "[[host]]\ncpu = \"d\"\n"),
            "[cluster] a.toml:11: there is no [cpu.d]; hint: did you mean 'c'?");
  EXPECT_EQ(error_of(cpu_text + card_text + "[[host]]\ncpu = \"c\"\n"),
            "[cluster] a.toml:10: [[host]] has no card");
  EXPECT_EQ(error_of(cpu_text + card_text + host_text + "gpu = \"g\"\n"),
            "[cluster] a.toml:13: unknown key 'gpu' in [[host]]; hint: did you mean 'gpus'?");
  EXPECT_EQ(error_of(cpu_text + card_text + host_text + "count = 0\n"),
            "[cluster] a.toml:13: count must be a whole number from 1 to 65536, got 0");
  EXPECT_EQ(error_of(cpu_text + card_text + host_text + "count = 65537\n"),
            "[cluster] a.toml:13: count must be a whole number from 1 to 65536, got 65537");
  EXPECT_EQ(error_of(cpu_text + card_text + host_text + "count = \"2\"\n"),
            "[cluster] a.toml:13: count must be a number; hint: leave the quotes out");
  EXPECT_EQ(error_of(cpu_text + gpu_text + card_text + host_text + "gpus = [\"x x g\"]\n"),
            "[cluster] a.toml:21: 'x x g' must begin with a whole number from 1 to 1024");
}

TEST(ClusterTest, EveryFileOfTheProjectCanBeRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("clusters")) {
    SCOPED_TRACE(entry.path().string());
    const Cluster cluster = read_cluster(entry.path());
    EXPECT_FALSE(cluster.devices().empty());
    EXPECT_NE(cluster.name, entry.path().string()) << "give it a name";
    ++files;
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace purine::sim
