// Evaluates a whole graph one operator after the other, with the CPU's kernels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/random.h"
#include "purine/graph/graph.h"
#include "tests/support/array.h"
#include "tests/support/run_operator.h"

namespace purine::test {

/// Holds the values of a graph's tensors. Variables begin with the value that their initial contract makes;
/// inputs must be set. Operators' random streams are hashes of their logical paths, as variables' are.
class Evaluator {
 public:
  explicit Evaluator(Graph& graph, std::uint64_t seed = 1) : graph_(graph), seed_(seed) {}

  /// Sets an input or a variable.
  void set(Tensor tensor, Array value) {
    PURINE_CHECK(!tensor.has_producer());
    PURINE_CHECK_EQUAL(value.info().text(), tensor.info().text());
    values_[tensor.index()] = std::move(value);
  }

  /// Computes what the given tensors depend on, and returns their values. Errors of kernels carry the
  /// operator's path.
  std::vector<Array> compute(std::span<const Tensor> wanted) {
    std::map<std::uint32_t, bool> operators;  // ascending, which is a topological order
    std::vector<Tensor> open(wanted.begin(), wanted.end());
    while (!open.empty()) {
      const Tensor tensor = open.back();
      open.pop_back();
      if (!tensor.has_producer()) {
        initialise(tensor);
        continue;
      }
      const Operator op = tensor.producer();
      if (!operators.emplace(op.index(), true).second) continue;
      for (int i = 0; i < op.input_count(); ++i) open.push_back(op.input(i));
    }
    for (const auto& [index, unused] : operators) run(graph_.op(index));
    std::vector<Array> results;
    for (const Tensor tensor : wanted) results.push_back(values_.at(tensor.index()));
    return results;
  }
  std::vector<Array> compute(std::initializer_list<Tensor> wanted) {
    return compute(std::span<const Tensor>(wanted.begin(), wanted.size()));
  }
  Array compute(Tensor wanted) { return compute({wanted})[0]; }

  /// One iteration: computes the next values of all variables and the given tensors, then takes the next
  /// values. Returns what the given tensors were.
  std::vector<Array> step(std::span<const Tensor> wanted = {}) {
    std::vector<Tensor> all(wanted.begin(), wanted.end());
    std::vector<Variable> changing;
    for (const Variable variable : graph_.variables()) {
      if (!variable.has_next()) continue;
      changing.push_back(variable);
      all.push_back(variable.next());
    }
    std::vector<Array> results = compute(all);
    for (std::size_t i = 0; i < changing.size(); ++i) {
      values_[changing[i].index()] = results[wanted.size() + i];
    }
    results.resize(wanted.size());
    ++iteration_;
    return results;
  }
  std::vector<Array> step(std::initializer_list<Tensor> wanted) {
    return step(std::span<const Tensor>(wanted.begin(), wanted.size()));
  }

  std::int64_t iteration() const { return iteration_; }

 private:
  void initialise(Tensor tensor) {
    if (values_.contains(tensor.index())) return;
    if (!graph_.is_variable(tensor)) throw Error("evaluate", "the input was not set").at(tensor.path());
    const Contract& initial = graph_.as_variable(tensor).initial();
    RunOptions options;
    options.seed = seed_;
    options.stream = hash_text(logical_path(tensor.path()));
    options.path = tensor.path();
    const ContractPtr contract = initial.shared_from_this();
    values_[tensor.index()] = run_operator(contract, std::span<const Array>(), options)[0];
  }

  void run(Operator op) {
    std::vector<Array> inputs;
    for (int i = 0; i < op.input_count(); ++i) inputs.push_back(values_.at(op.input(i).index()));
    RunOptions options;
    options.seed = seed_;
    options.stream = hash_text(logical_path(op.path()));
    options.iteration = iteration_;
    options.path = op.path();
    try {
      std::vector<Array> outputs = run_operator(op.contract_pointer(), inputs, options);
      for (int i = 0; i < op.output_count(); ++i) {
        values_[op.output(i).index()] = std::move(outputs[static_cast<std::size_t>(i)]);
      }
    } catch (const Error& error) {
      throw error.at(op.path());
    }
  }

  Graph& graph_;
  std::uint64_t seed_;
  std::int64_t iteration_ = 0;
  std::map<std::uint32_t, Array> values_;  // by tensor
};

}  // namespace purine::test
