#include "purine/program/estimate.h"

#include <algorithm>
#include <cstdint>

namespace purine::program {

double estimate_bytes_seconds(double bytes) {
  constexpr double bytes_per_second = 8e9;
  return bytes / bytes_per_second;
}

double estimate_seconds(const Cost& cost) {
  constexpr double operations_per_second = 50e9;
  return start_seconds +
         std::max(cost.operations / operations_per_second, estimate_bytes_seconds(cost.bytes));
}

double estimate_message_seconds(double bytes, double bytes_per_second) {
  constexpr double start = 50e-6;
  return start + bytes / bytes_per_second;
}

std::vector<Remaining> remaining_after(Graph& graph, double network_bytes_per_second) {
  std::vector<float> seconds(graph.operator_count());
  std::vector<TensorInfo> infos;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    infos.clear();
    for (int k = 0; k < op.input_count(); ++k) infos.push_back(op.input(k).info());
    for (int k = 0; k < op.output_count(); ++k) infos.push_back(op.output(k).info());
    const auto inputs = std::span<const TensorInfo>(infos).first(static_cast<std::size_t>(op.input_count()));
    const Cost cost = op.contract().cost(inputs, std::span<const TensorInfo>(infos).subspan(inputs.size()));
    const bool message =
        op.contract().crosses_locations() && op.input(0).location().rank != op.location().rank;
    seconds[i] = static_cast<float>(
        message ? estimate_message_seconds(static_cast<double>(infos[0].bytes()), network_bytes_per_second)
                : estimate_seconds(cost));
  }
  std::vector<Remaining> remaining(graph.tensor_count());
  const auto walk = [&](float Remaining::*part) {
    for (std::uint32_t i = graph.operator_count(); i-- > 0;) {
      const Operator op = graph.op(i);
      float after = 0;
      for (int k = 0; k < op.output_count(); ++k) {
        after = std::max(after, remaining[op.output(k).index()].*part);
      }
      for (int k = 0; k < op.input_count(); ++k) {
        float& needed = remaining[op.input(k).index()].*part;
        needed = std::max(needed, after + seconds[i]);
      }
    }
  };
  walk(&Remaining::in_last);
  for (const Variable variable : graph.variables()) {
    if (!variable.has_next()) continue;
    float& needed = remaining[variable.next().index()].in_first;
    needed = std::max(needed, remaining[variable.index()].in_last);
  }
  walk(&Remaining::in_first);
  return remaining;
}

}  // namespace purine::program
