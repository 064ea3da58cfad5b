// A program of another project that uses the installed library: it builds a graph and runs its operator.
#include <fmt/core.h>
#include <purine/backend/cpu/kernels.h>
#include <purine/purine.h>

#include <array>
#include <cstddef>
#include <memory>

int main() {
  purine::Graph graph;
  const purine::Tensor x = graph.input("x", {{2}, purine::DType::f32});
  const purine::Tensor y = purine::ops::relu(x);

  purine::KernelRegistry kernels;
  purine::cpu::register_cpu_kernels(kernels);
  const std::array infos{x.info(), y.info()};
  const std::array layouts{purine::Layout::plain};
  const auto kernel = kernels.bind({.contract = y.producer().contract(),
                                    .inputs = {&infos[0], 1},
                                    .outputs = {&infos[1], 1},
                                    .input_layouts = layouts,
                                    .output_layouts = layouts,
                                    .path = y.path()});
  alignas(64) std::array<float, 2> values{-1, 2};
  alignas(64) std::array<float, 2> results{};
  std::byte* input = reinterpret_cast<std::byte*>(values.data());
  std::byte* output = reinterpret_cast<std::byte*>(results.data());
  kernel->run({.inputs = {&input, 1}, .outputs = {&output, 1}});
  fmt::print("relu([{}, {}]) = [{}, {}]\n", values[0], values[1], results[0], results[1]);
}
