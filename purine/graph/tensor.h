// The handles to a graph's vertices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/location.h"
#include "purine/core/shape.h"

namespace purine {

class Contract;
class Graph;
class Operator;

/// A handle to a tensor of a graph: small, copied freely, valid as long as the graph lives. A default-made
/// handle is not valid.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Graph* graph, std::uint32_t index) : graph_(graph), index_(index) {}

  bool valid() const { return graph_ != nullptr; }
  explicit operator bool() const { return valid(); }
  Graph& graph() const { return *graph_; }
  std::uint32_t index() const { return index_; }
  const TensorInfo& info() const;
  const Shape& shape() const { return info().shape; }
  DType dtype() const { return info().dtype; }
  /// `lenet/conv1/weight`; the outputs of an operator are named after it (`lenet/conv1/conv2d`, with `:1` for
  /// its second).
  std::string path() const;
  Location location() const;
  /// False for inputs and variables.
  bool has_producer() const;
  Operator producer() const;
  /// Which of its producer's outputs this is.
  int output_index() const;

  bool operator==(const Tensor& other) const = default;

 private:
  Graph* graph_ = nullptr;
  std::uint32_t index_ = 0;
};

/// A tensor that lives across iterations; `Graph::set_next` names the tensor that is its next value. A
/// variable without a next value keeps its initial one.
class Variable : public Tensor {
 public:
  Variable() = default;
  Variable(Graph* graph, std::uint32_t index) : Tensor(graph, index) {}

  /// True for what an optimiser learns; false for its own state and for running statistics.
  bool trainable() const;
  /// True where weight decay applies (weights; not biases nor normalisation parameters).
  bool decays() const;
  /// The contract, without inputs, whose output is the initial value.
  const Contract& initial() const;
  bool has_next() const;
  Tensor next() const;
};

/// A handle to an operator of a graph.
class Operator {
 public:
  Operator() = default;
  Operator(Graph* graph, std::uint32_t index) : graph_(graph), index_(index) {}

  bool valid() const { return graph_ != nullptr; }
  Graph& graph() const { return *graph_; }
  std::uint32_t index() const { return index_; }
  const Contract& contract() const;
  std::shared_ptr<const Contract> contract_pointer() const;
  std::string_view type() const;
  std::string path() const;
  Location location() const;
  int input_count() const;
  int output_count() const;
  Tensor input(int index) const;
  Tensor output(int index = 0) const;
  std::vector<Tensor> inputs() const;
  std::vector<Tensor> outputs() const;

  bool operator==(const Operator& other) const = default;

 private:
  Graph* graph_ = nullptr;
  std::uint32_t index_ = 0;
};

}  // namespace purine
