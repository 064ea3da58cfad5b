// Freezing a graph of a million vertices: seconds, and bytes a vertex of the frozen program.
#include "purine/program/program.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "purine/backend/cpu/kernels.h"
#include "purine/ops/constant.h"
#include "purine/ops/relu.h"

using namespace purine;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const int operators = argc > 1 ? std::atoi(argv[1]) : 500000;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  KernelRegistry kernels;
  cpu::register_cpu_kernels(kernels);

  Graph graph;
  auto begin = now();
  const Variable variable = graph.variable("source", {{8}, DType::f32},
                                           ops::make_constant({{8}, DType::f32}, 1.0), {.trainable = false});
  std::vector<Tensor> tensors = {ops::relu(variable)};
  const auto gradient = std::make_shared<ops::ReluGradient>();
  std::mt19937 random(1);
  while (static_cast<int>(graph.operator_count()) < operators) {
    const auto recent = [&] {
      return tensors[tensors.size() - 1 - random() % std::min<std::size_t>(tensors.size(), 1000)];
    };
    tensors.push_back(graph.add(gradient, {recent(), recent()}).output());
  }
  for (const Tensor tensor : std::vector<Tensor>(tensors.end() - 1000, tensors.end())) graph.watch(tensor);
  fmt::print("build:  {} operators and {} tensors in {:.2f} s\n", graph.operator_count(),
             graph.tensor_count(), seconds_since(begin));
  begin = now();
  verify(graph);
  fmt::print("verify: {:.2f} s\n", seconds_since(begin));
  begin = now();
  FreezeOptions options;
  options.kernels = {{DeviceKind::cpu, &kernels}};
  options.host_read = [](Tensor) { return make_kernel([](const KernelCall&) {}); };
  const Program program(graph, options);
  const double vertices = 2.0 * program.operator_count();
  fmt::print("freeze: {} operators run, {} edges, in {:.2f} s\n", program.operator_count(),
             program.marked_graph().edge_count(), seconds_since(begin));
  fmt::print("bytes a vertex, edges included, bound kernels not: {:.1f}\n",
             static_cast<double>(program.structure_bytes()) / vertices);
}
