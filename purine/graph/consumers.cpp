#include "purine/graph/graph.h"

namespace purine {

Consumers::Consumers(Graph& graph) : offsets_(graph.tensor_count() + 1, 0) {
  // Visits every pair of tensor and reader once, readers ascending; `last` remembers a tensor's latest
  // reader, so that one which reads it twice counts once.
  constexpr std::uint32_t nobody = 0xffffffffU;
  std::vector<std::uint32_t> last(graph.tensor_count(), nobody);
  const auto visit = [&](auto&& found) {
    for (std::uint32_t index = 0; index < graph.operator_count(); ++index) {
      const Operator op = graph.op(index);
      for (int i = 0; i < op.input_count(); ++i) {
        const std::uint32_t tensor = op.input(i).index();
        if (last[tensor] == index) continue;
        last[tensor] = index;
        found(tensor, index);
      }
    }
  };
  visit([&](std::uint32_t tensor, std::uint32_t) { ++offsets_[tensor + 1]; });
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
  operators_.resize(offsets_.back());
  std::vector<std::uint32_t> place(offsets_.begin(), offsets_.end() - 1);
  last.assign(graph.tensor_count(), nobody);
  visit([&](std::uint32_t tensor, std::uint32_t index) { operators_[place[tensor]++] = index; });
}

}  // namespace purine
