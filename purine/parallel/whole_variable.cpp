#include "purine/parallel/whole_variable.h"

#include <algorithm>

namespace purine::parallel {

std::vector<std::size_t> WholeVariable::distinct() const {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto same = [&](std::size_t other) { return pieces[other].ranges == pieces[i].ranges; };
    if (std::none_of(numbers.begin(), numbers.end(), same)) numbers.push_back(i);
  }
  return numbers;
}

std::vector<WholeVariable> whole_variables(Graph& graph) {
  std::vector<WholeVariable> all;
  for (const Variable variable : graph.variables()) {
    WholeVariable whole{variable.path(), variable.info(), {}};
    std::vector<Range> ranges;
    for (const std::int64_t extent : variable.shape()) ranges.push_back({0, extent});
    whole.pieces.push_back({whole.path, variable.location(), std::move(ranges)});
    all.push_back(std::move(whole));
  }
  return all;
}

std::vector<WholeVariable> whole_variables(Graph& graph, const Partitioned& partitioned) {
  std::vector<WholeVariable> all;
  for (const Variable variable : graph.variables()) {
    WholeVariable whole{variable.path(), variable.info(), {}};
    for (Partitioned::Piece& piece : partitioned.pieces(variable)) {
      whole.pieces.push_back({piece.tensor.path(), piece.tensor.location(), std::move(piece.ranges)});
    }
    all.push_back(std::move(whole));
  }
  return all;
}

}  // namespace purine::parallel
