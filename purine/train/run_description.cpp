#include "purine/train/run_description.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "purine/backend/cpu/machine_probe.h"
#include "purine/session/gather_values.h"
#include "purine/train/job_file.h"

namespace purine::train {
namespace {

// Of one rank.
struct HostFacts {
  int cores = 0;
  double operations_per_second = 0;  // of a core
  double bytes_per_second = 0;
  double memory_bytes = 0;
};

HostFacts host_facts(const Runtime& runtime) {
  constexpr double seconds = 0.1;
  const cpu::CoreRates rates = cpu::measure_core_rates(runtime.workers(), seconds);
  return {runtime.workers(), rates.operations_per_second, rates.bytes_per_second,
          static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE))};
}

std::string cluster_text(const std::vector<HostFacts>& hosts, std::span<const net::Link> links) {
  constexpr double least = 1e-3;  // of what a cluster file takes
  std::string text = "name = \"as measured\"\n";
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const HostFacts& host = hosts[rank];
    const net::Link link = rank < links.size() ? links[rank] : net::Link{1.25e9, 0};
    text += fmt::format(
        "[cpu.rank{0}]\ncores = {1}\nf32_gflops = {2:.6g}\nmemory_gb_per_s = {3:.6g}\nmemory_gib = {4:.6g}\n"
        "[card.rank{0}]\ngbit_per_s = {5:.6g}\nlatency_us = {6:.6g}\n",
        rank, host.cores, std::max(least, host.operations_per_second / 1e9),
        std::max(least, host.bytes_per_second / 1e9), host.memory_bytes / (1 << 30),
        std::max(least, link.bytes_per_second * 8 / 1e9), link.latency * 1e6);
  }
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    text += fmt::format("[[host]]\ncpu = \"rank{0}\"\ncard = \"rank{0}\"\n", rank);
  }
  return text;
}

}  // namespace

trace::RunDescription describe_run(const Runtime& runtime, const ParallelSetup& setup,
                                   const data::ImageSize& image, std::int64_t classes,
                                   std::span<const net::Link> links) {
  Job job = setup.loaded.job;
  job.parallel.devices = devices_text(setup.devices());
  return {job_text(job),
          cluster_text(gather_values(runtime.endpoint(), host_facts(runtime)), links),
          {image.channels, image.height, image.width},
          classes};
}

}  // namespace purine::train
