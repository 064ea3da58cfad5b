// Graphs over several ranks that exchange values, and what runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purine/session/session.h"
#include "tests/support/mix_operator.h"
#include "tests/support/ranks.h"

namespace purine::test {

inline constexpr std::size_t device_memory = std::size_t{1} << 22U;

inline std::unique_ptr<Runtime> make_runtime(Endpoint& endpoint, int workers,
                                             std::vector<Location> devices = {}) {
  auto runtime = std::make_unique<Runtime>(RuntimeOptions{.workers = workers,
                                                          .devices = std::move(devices),
                                                          .emulated = {.memory = device_memory},
                                                          .endpoint = &endpoint});
  register_mix(runtime->cpu_kernels());
  return runtime;
}

inline Location cpu(std::int32_t rank) {
  return {rank, DeviceKind::cpu, 0};
}

inline Tensor mix_at(Graph& graph, Location location, std::vector<Tensor> inputs, Mix::Options options) {
  for (Tensor& input : inputs) input = ops::copy(input, location);
  const auto placement = graph.at(location);
  return mix(graph, inputs, std::move(options)).output();
}

/// A variable at each rank, the next value of which takes the values at all ranks. The first rank's is
/// watched.
inline void build_exchange(Graph& graph, int ranks, const Mix::Options& first = {}, int microseconds = 0) {
  std::vector<Tensor> values;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto placement = graph.at(cpu(rank));
    const Variable variable =
        graph.variable("variable_" + std::to_string(rank), {{16}, DType::i64},
                       std::make_shared<Mix>(Mix::Options{.salt = rank, .outputs = {16}}));
    Mix::Options options = rank == 1 ? first : Mix::Options{};
    options.salt = rank + 10;
    options.outputs = {16};
    options.microseconds = microseconds;
    const auto scope = graph.scope("rank_" + std::to_string(rank));
    values.push_back(mix(graph, {variable}, options).output());
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto scope = graph.scope("update_" + std::to_string(rank));
    const Variable variable = graph.find_variable("variable_" + std::to_string(rank));
    graph.set_next(variable, mix_at(graph, cpu(rank), values, {.salt = rank + 20, .outputs = {16}}));
    if (rank == 0) graph.watch(mix_at(graph, cpu(0), {variable.next()}, {.salt = 30}));
  }
}

}  // namespace purine::test
