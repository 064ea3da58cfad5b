#include "purine/trace/operators_of.h"

#include <string>

namespace purine::trace {

std::vector<OperatorLabel> operators_of(const Program& program) {
  std::vector<OperatorLabel> labels(program.operator_count());
  for (std::uint32_t op = 0; op < program.operator_count(); ++op) {
    OperatorLabel& label = labels[op];
    label.path = program.path(op);
    label.type = program.type(op);
    label.location = program.location(op).text();
    label.shapes = program.shapes(op);
    const Cost cost = program.cost(op);
    label.operations = cost.operations;
    label.bytes = cost.bytes;
    label.brings_data = program.brings_data(op);
    if (program.is_exchange(op)) {
      const Program::Exchange ends = program.exchange(op, 0);
      label.exchange = {ends.sends, ends.peer, ends.channel, static_cast<std::int64_t>(ends.bytes)};
    }
    for (const Program::PlannedOutput& output : program.planned_outputs(op)) {
      label.outputs.push_back(
          {static_cast<std::int64_t>(output.offset), static_cast<std::int64_t>(output.bytes),
           static_cast<std::int64_t>(output.slots), static_cast<std::int64_t>(output.stride)});
    }
  }
  const MarkedGraph& graph = program.marked_graph();
  for (std::uint32_t position = 0; position < graph.operator_count(); ++position) {
    const std::uint32_t from = graph.operator_at(position);
    for (const MarkedGraph::Edge& edge : graph.edges(position)) {
      const std::uint32_t to = graph.operator_at(edge.to());
      if (to != from) labels[to].after.push_back({from, edge.tokens(), edge.kind() == EdgeKind::value});
    }
  }
  return labels;
}

std::vector<PlannedMemory> memory_of(const Program& program) {
  std::vector<PlannedMemory> memory;
  for (std::size_t place = 0; place < program.places().size(); ++place) {
    const MemoryUse& use = program.memory()[place];
    memory.push_back({program.places()[place].text(), static_cast<std::int64_t>(use.variables),
                      static_cast<std::int64_t>(use.arena + use.slots)});
  }
  return memory;
}

}  // namespace purine::trace
