// A graph as text, vertex by vertex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/graph/graph.h"

namespace purine {

/// The lines of a graph's dump: inputs, variables, operators and what is watched, in this order. Two graphs
/// with equal lines are equal.
class VertexTexts {
 public:
  explicit VertexTexts(Graph& graph)
      : graph_(graph),
        inputs_(graph.inputs()),
        variables_(graph.variables()),
        watched_(graph.watched()),
        size_(inputs_.size() + variables_.size() + graph.operator_count() + watched_.size()) {}

  std::size_t size() const { return size_; }
  /// Without a line's end.
  std::string text(std::size_t index) const;
  std::string path(std::size_t index) const;
  /// For each line a hash of all that it says. They take a fraction of the texts' time.
  std::vector<std::uint64_t> hashes() const;

 private:
  /// Calls the function with the input, variable, operator or watched tensor.
  template <typename Function>
  auto with(std::size_t index, Function&& function) const;

  Graph& graph_;
  std::vector<Tensor> inputs_;
  std::vector<Variable> variables_;
  std::vector<Tensor> watched_;
  std::size_t size_;
};

}  // namespace purine
