#include "purine/program/whole_graph.h"

#include <algorithm>
#include <numeric>

#include "purine/program/lowered.h"

namespace purine::program {
namespace {

std::vector<bool> find_live(Graph& graph) {
  std::vector<bool> live(graph.operator_count(), false);
  std::vector<std::uint32_t> pending;
  const auto need = [&](Tensor tensor) {
    if (!tensor.has_producer()) return;
    const std::uint32_t producer = tensor.producer().index();
    if (live[producer]) return;
    live[producer] = true;
    pending.push_back(producer);
  };
  for (const Variable variable : graph.variables()) {
    if (variable.has_next()) need(variable.next());
  }
  for (const Tensor tensor : graph.watched()) need(tensor);
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (graph.op(i).contract().has_side_effect() && !live[i]) {
      live[i] = true;
      pending.push_back(i);
    }
  }
  while (!pending.empty()) {
    const Operator op = graph.op(pending.back());
    pending.pop_back();
    for (int i = 0; i < op.input_count(); ++i) need(op.input(i));
  }
  return live;
}

std::vector<bool> find_changing(Graph& graph) {
  std::vector<bool> changing(graph.tensor_count(), false);
  for (const Variable variable : graph.variables()) changing[variable.index()] = variable.has_next();
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    bool any = false;
    for (int k = 0; k < op.input_count(); ++k) any = any || changing[op.input(k).index()];
    for (int k = 0; any && k < op.output_count(); ++k) changing[op.output(k).index()] = true;
  }
  return changing;
}

// Numbers grouped by rank, each group ascending. `visit(add)` calls add(rank, number) for all of them, in
// ascending order, and is called twice.
template <typename Visit>
void group_by_rank(Visit&& visit, std::vector<std::uint32_t>& begins, std::vector<std::uint32_t>& numbers) {
  begins.assign(1, 0);
  visit([&](std::int32_t rank, std::uint32_t) {
    const auto after = static_cast<std::size_t>(rank) + 1;
    if (begins.size() <= after) begins.resize(after + 1, 0);
    ++begins[after];
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  numbers.resize(begins.back());
  std::vector<std::uint32_t> next(begins.begin(), begins.end());
  visit([&](std::int32_t rank, std::uint32_t number) {
    numbers[next[static_cast<std::size_t>(rank)]++] = number;
  });
}

std::span<const std::uint32_t> group_of(std::int32_t rank, const std::vector<std::uint32_t>& begins,
                                        const std::vector<std::uint32_t>& numbers) {
  const auto index = static_cast<std::size_t>(rank);
  if (index + 1 >= begins.size()) return {};
  return {numbers.data() + begins[index], begins[index + 1] - begins[index]};
}

}  // namespace

WholeGraph::WholeGraph(Graph& graph) : graph_(graph), variables_(graph.variables()) {
  verify(graph);
  live_ = find_live(graph);
  variable_of_.assign(graph.tensor_count(), none);
  for (std::uint32_t i = 0; i < variables_.size(); ++i) variable_of_[variables_[i].index()] = i;
  group_by_rank(
      [&](const auto& add) {
        for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
          if (!live_[i]) continue;
          const Operator op = graph.op(i);
          const std::int32_t rank = op.location().rank;
          add(rank, i);
          if (!op.contract().crosses_locations()) continue;
          if (const std::int32_t from = op.input(0).location().rank; from != rank) add(from, i);
        }
      },
      operator_begins_, operators_);
  group_by_rank(
      [&](const auto& add) {
        for (std::uint32_t i = 0; i < variables_.size(); ++i) add(variables_[i].location().rank, i);
      },
      variable_begins_, variables_by_rank_);
}

std::span<const std::uint32_t> WholeGraph::operators_of(std::int32_t rank) const {
  return group_of(rank, operator_begins_, operators_);
}

std::span<const std::uint32_t> WholeGraph::variables_of(std::int32_t rank) const {
  return group_of(rank, variable_begins_, variables_by_rank_);
}

bool WholeGraph::changes(Tensor tensor) const {
  if (changing_.empty()) changing_ = find_changing(graph_);
  return changing_[tensor.index()];
}

const Fusions& WholeGraph::fusions() const {
  if (!fusions_) fusions_ = find_fusions(graph_, live_);
  return *fusions_;
}

const std::vector<Remaining>& WholeGraph::remaining(double network_bytes_per_second) const {
  if (remaining_.empty() || remaining_rate_ != network_bytes_per_second) {
    remaining_ = remaining_after(graph_, network_bytes_per_second);
    remaining_rate_ = network_bytes_per_second;
  }
  return remaining_;
}

}  // namespace purine::program
