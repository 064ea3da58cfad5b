#include "purine/ops/iteration.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor iteration(Graph& graph, std::string_view name) {
  return graph.add(std::make_shared<Iteration>(), {}, name).output();
}

std::vector<TensorInfo> Iteration::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 0);
  return {{{}, DType::i64}};
}

Cost Iteration::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_iteration(Registry& registry) {
  registry.add("iteration", {{"scalar", [](DType) { return std::make_shared<Iteration>(); }, {}, false}});
}

}  // namespace purine::ops
