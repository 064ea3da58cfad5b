// Seconds and bytes a vertex to build, verify, copy and dump a graph of a million vertices.
// Usage: bench_graph [vertices]
#include "purine/graph/graph.h"

#include <fmt/core.h>
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "purine/graph/transform.h"
#include "purine/ops/relu.h"

namespace {

using namespace purine;

/// Blocks of a scope and ten operators, each with a contract of its own: every block reads the one before.
void build(Graph& graph, std::uint32_t vertices) {
  const TensorInfo info{{64, 32, 28, 28}, DType::f32};
  Tensor x = graph.input("image", info);
  while (graph.tensor_count() + graph.operator_count() < vertices) {
    auto scope = graph.scope("block");
    const Tensor before = x;
    for (int i = 0; i < 9; ++i) x = ops::relu(x);
    x = graph.add(std::make_shared<ops::ReluGradient>(), {x, before}, "gradient").output();
  }
  graph.watch(x);
}

std::size_t heap_bytes() {
  return mallinfo2().uordblks + mallinfo2().hblkhd;
}

template <typename Function>
double seconds(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto vertices = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000000);
  const std::size_t before = heap_bytes();
  Graph graph;
  const double build_seconds = seconds([&] { build(graph, vertices); });
  const std::size_t bytes = heap_bytes() - before;
  const std::uint32_t made = graph.tensor_count() + graph.operator_count();
  fmt::print("{} vertices: {} tensors, {} operators\n", made, graph.tensor_count(), graph.operator_count());
  fmt::print("build   {:6.3f} s, {:.1f} bytes a vertex\n", build_seconds,
             static_cast<double>(bytes) / static_cast<double>(made));
  fmt::print("verify  {:6.3f} s\n", seconds([&] { verify(graph); }));
  Graph copy;
  fmt::print("copy    {:6.3f} s\n", seconds([&] { copy_graph(graph, copy); }));
  Graph smaller;
  fmt::print("batch   {:6.3f} s\n", seconds([&] { with_batch_size(graph, 7, smaller); }));
  std::size_t characters = 0;
  fmt::print("dump    {:6.3f} s", seconds([&] { characters = dump(graph).size(); }));
  fmt::print(", {:.1f} MB\n", static_cast<double>(characters) / 1e6);
  return 0;
}
