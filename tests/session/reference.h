// Graphs of mixes run one operator after another: what a session's results are held to.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "purine/session/session.h"
#include "tests/support/mix_operator.h"

namespace purine::test {

using Values = std::vector<std::int64_t>;

/// Runs a graph of mixes one operator after another, each tensor in memory of its own.
class Reference {
 public:
  explicit Reference(Graph& graph) : graph_(graph) {
    for (const Variable variable : graph.variables()) {
      variables_[variable.index()] = run(variable.initial(), {}, {variable.info()}, 0)[0];
    }
  }

  /// The watched scalar of the next iteration.
  std::int64_t step(std::int64_t iteration) {
    std::map<std::uint32_t, Values> values = variables_;
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      const Operator op = graph_.op(i);
      std::vector<Values> inputs;
      for (const Tensor input : op.inputs()) inputs.push_back(values.at(input.index()));
      std::vector<TensorInfo> infos;
      for (const Tensor output : op.outputs()) infos.push_back(output.info());
      const std::vector<Values> outputs =
          op.type() == "copy" ? inputs : run(op.contract(), inputs, infos, iteration);
      for (int k = 0; k < op.output_count(); ++k)
        values[op.output(k).index()] = outputs[static_cast<std::size_t>(k)];
    }
    for (const Variable variable : graph_.variables()) {
      if (variable.has_next()) variables_[variable.index()] = values.at(variable.next().index());
    }
    return values.at(graph_.watched().at(0).index()).at(0);
  }

  const Values& variable(Variable variable) const { return variables_.at(variable.index()); }

 private:
  static std::vector<Values> run(const Contract& contract, const std::vector<Values>& inputs,
                                 const std::vector<TensorInfo>& outputs, std::int64_t iteration) {
    std::vector<TensorInfo> infos;
    std::vector<std::byte*> input_pointers;
    for (const Values& input : inputs) {
      infos.push_back({{static_cast<std::int64_t>(input.size())}, DType::i64});
      input_pointers.push_back(reinterpret_cast<std::byte*>(const_cast<std::int64_t*>(input.data())));
    }
    std::vector<Values> results;
    std::vector<std::byte*> output_pointers;
    for (const TensorInfo& info : outputs) results.emplace_back(info.shape.elements());
    for (Values& result : results) output_pointers.push_back(reinterpret_cast<std::byte*>(result.data()));
    MixKernel kernel({contract, infos, outputs, {}, {}, 0, 0, ""});
    for (int part = 0; part < kernel.parts(); ++part) {
      kernel.run({input_pointers, output_pointers, nullptr, iteration, part});
    }
    return results;
  }

  Graph& graph_;
  std::map<std::uint32_t, Values> variables_;
};

inline Values read(Session& session, Variable variable) {
  const std::span<std::byte> bytes = session.variables().at(variable.path()).bytes();
  Values values(bytes.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace purine::test
