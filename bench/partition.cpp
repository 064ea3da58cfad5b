// Seconds and bytes to divide a network, with momentum, over many ranks, and to freeze the part of one of
// them. Seconds are the process's own on a processor, which others on the machine change little. Usage:
// bench_partition [network] [ranks…]; without a network GoogLeNet.
#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "purine/backend/cpu/kernels.h"
#include "purine/graph/graph.h"
#include "purine/graph/vertex_texts.h"
#include "purine/models/models.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/program/program.h"

namespace {

using namespace purine;

std::size_t heap_bytes() {
  return mallinfo2().uordblks + mallinfo2().hblkhd;
}

rusage used() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

template <typename Function>
double seconds(Function&& function) {
  const auto now = [] {
    const rusage usage = used();
    const auto of = [](timeval time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
  };
  const double begin = now();
  function();
  return now() - begin;
}

void measure(const models::Model& model, int locations) {
  const std::size_t before = heap_bytes();
  Graph graph;
  const std::int64_t batch = std::int64_t{16} * locations;
  const double build_seconds = seconds([&] {
    const Tensor image =
        graph.input("image", {{batch, model.image[0], model.image[1], model.image[2]}, DType::f32});
    const Tensor label = graph.input("label", {{batch}, DType::i32});
    const models::Network network = model.build(image, model.classes, nn::Mode::training);
    optim::momentum(ops::softmax_cross_entropy(network.logits, label, "loss"));
  });
  std::vector<Location> places;
  for (int i = 0; i < locations; ++i) places.push_back({i, DeviceKind::cpu, 0});
  parallel::Specs specs{parallel::Mesh(places)};
  specs.split_samples(graph, "data");
  std::vector<parallel::Partitioned> result;
  const double divide_seconds = seconds([&] { result.push_back(parallel::partition(graph, specs)); });
  const std::size_t bytes = heap_bytes() - before;
  Graph& divided = result.front().graph();
  const double verify_seconds = seconds([&] { verify(divided); });
  const std::uint32_t vertices = divided.operator_count() + divided.tensor_count();
  // What a session does before the first step: all processes compare hashes of the graph, and each freezes
  // its own part.
  std::uint64_t hash = 0;
  const double hash_seconds = seconds([&] {
    for (const std::uint64_t of_vertex : VertexTexts(divided).hashes()) hash = hash * 31 + of_vertex;
  });
  KernelRegistry kernels;
  cpu::register_cpu_kernels(kernels);
  const auto no_kernel = [](Tensor) { return make_kernel([](const KernelCall&) {}); };
  FreezeOptions options;
  options.rank = locations / 2;
  options.kernels = {{DeviceKind::cpu, &kernels}};
  options.host_input = no_kernel;
  options.host_read = no_kernel;
  std::unique_ptr<Program> program;
  const double freeze_seconds = seconds([&] { program = std::make_unique<Program>(divided, options); });
  fmt::print(
      "{:5} ranks: {:8} vertices, build {:.3f} s, divide {:6.3f} s, hash {:6.3f} s, freeze {:6.3f} s (verify "
      "{:6.3f} s) of {:6} operators, {:6.3f} s in all, {:7.1f} MiB, {:7.1f} MiB with the program, at most "
      "{:7.1f} MiB of the process\n",
      locations, vertices, build_seconds, divide_seconds, hash_seconds, freeze_seconds, verify_seconds,
      program->operator_count(), build_seconds + divide_seconds + hash_seconds + freeze_seconds,
      static_cast<double>(bytes) / (1U << 20U), static_cast<double>(heap_bytes() - before) / (1U << 20U),
      static_cast<double>(used().ru_maxrss) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  std::string network = "googlenet";
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) {
    if (std::isdigit(static_cast<unsigned char>(*argv[i])) != 0) {
      counts.push_back(std::atoi(argv[i]));
    } else {
      network = argv[i];
    }
  }
  if (counts.empty()) counts = {1, 2, 16, 128, 1024};
  for (const int count : counts) measure(models::find_model(network), count);
  return 0;
}
