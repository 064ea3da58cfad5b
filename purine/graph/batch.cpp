#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/graph/transform.h"

namespace purine {
namespace {

/// Follows the batch through a graph. What is found grows only: a tensor that is split stays so.
class BatchFlow {
 public:
  BatchFlow(Graph& graph, std::int64_t batch, std::int64_t samples)
      : graph_(graph),
        batch_(batch),
        samples_(samples),
        consumers_(graph),
        dimension_(graph.tensor_count(), SplitRule::whole),
        rules_(graph.operator_count()) {}

  void run() {
    for (const Tensor input : graph_.inputs()) {
      if (input.shape().rank() > 0 && input.shape()[0] == batch_) split(input, 0);
    }
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      if (graph_.op(i).contract().brings_samples()) start_at(graph_.op(i));
    }
    while (!open_.empty()) {
      const std::uint32_t index = *open_.begin();
      open_.erase(open_.begin());
      visit(graph_.op(index));
    }
  }

  TensorInfo info(Tensor tensor) const {
    TensorInfo info = tensor.info();
    const int dimension = dimension_[tensor.index()];
    if (dimension >= 0) info.shape.set(dimension, info.shape[dimension] / batch_ * samples_);
    return info;
  }

  ContractPtr contract(Operator op) const {
    const std::optional<SplitRule>& rule = rules_[op.index()];
    if (!rule) return op.contract_pointer();
    const std::int64_t units = rule->units / batch_ * samples_;
    try {
      ContractPtr contract = op.contract().piece(*rule, {0, units, units}, infos_of(op));
      check_outputs(op, *contract);
      return contract;
    } catch (const Error& error) {
      throw error.at(op.path());
    }
  }

 private:
  void split(Tensor tensor, int dimension) {
    if (dimension_[tensor.index()] == dimension) return;
    dimension_[tensor.index()] = dimension;
    for (const std::uint32_t consumer : consumers_.of(tensor.index())) open_.insert(consumer);
  }

  void take(Operator op, const SplitRule& rule) {
    rules_[op.index()] = rule;
    for (int i = 0; i < op.output_count(); ++i) {
      const int dimension = rule.outputs[static_cast<std::size_t>(i)];
      if (dimension >= 0) split(op.output(i), dimension);
    }
  }

  void start_at(Operator source) {
    for (const SplitRule& rule : source.contract().split_rules({})) {
      if (rule.units != batch_ || rule.outputs.empty() || rule.outputs.front() != 0) continue;
      take(source, rule);
      return;
    }
    throw no_rule(source);
  }

  void visit(Operator op) {
    const std::vector<SplitRule> rules = op.contract().split_rules(infos_of(op));
    for (const bool with_demands : {false, true}) {
      for (const SplitRule& rule : rules) {
        if (!fits(op, rule, with_demands)) continue;
        if (with_demands) demand_inputs(op, rule);
        take(op, rule);
        return;
      }
    }
    throw no_rule(op);
  }

  /// True if the rule splits what is split already and leaves whole what must be; with demands, inputs that
  /// are whole may become split if their producers can follow.
  bool fits(Operator op, const SplitRule& rule, bool with_demands) const {
    if (rule.units % batch_ != 0) return false;
    for (int i = 0; i < op.output_count(); ++i) {
      const Tensor output = op.output(i);
      const int now = dimension_[output.index()];
      const int then = rule.outputs[static_cast<std::size_t>(i)];
      if (now >= 0 && then != now) return false;
      if (then >= 0 && output.shape()[then] % batch_ != 0) return false;
    }
    for (int i = 0; i < op.input_count(); ++i) {
      const int wanted = rule.inputs[static_cast<std::size_t>(i)];
      if (dimension_[op.input(i).index()] == wanted) continue;
      if (!with_demands || !can_follow(op.input(i), wanted)) return false;
    }
    return true;
  }

  /// The rule under which a tensor that is whole so far becomes split: its producer, and theirs, must be able
  /// to follow, back to operators without inputs. Variables and inputs stay what they are.
  std::optional<SplitRule> following_rule(Tensor tensor, int dimension) const {
    if (dimension < 0 || dimension_[tensor.index()] >= 0 || !tensor.has_producer()) return std::nullopt;
    const Operator producer = tensor.producer();
    for (SplitRule& rule : producer.contract().split_rules(infos_of(producer))) {
      if (rule.outputs[static_cast<std::size_t>(tensor.output_index())] != dimension) continue;
      if (fits(producer, rule, true)) return std::move(rule);
    }
    return std::nullopt;
  }

  bool can_follow(Tensor tensor, int dimension) const {
    return following_rule(tensor, dimension).has_value();
  }

  void demand_inputs(Operator op, const SplitRule& rule) {
    for (int i = 0; i < op.input_count(); ++i) {
      const int wanted = rule.inputs[static_cast<std::size_t>(i)];
      const Tensor input = op.input(i);
      if (dimension_[input.index()] == wanted) continue;
      const std::optional<SplitRule> followed = following_rule(input, wanted);
      PURINE_CHECK(followed.has_value());
      demand_inputs(input.producer(), *followed);
      take(input.producer(), *followed);
    }
  }

  static std::vector<TensorInfo> infos_of(Operator op) {
    std::vector<TensorInfo> infos;
    for (int i = 0; i < op.input_count(); ++i) infos.push_back(op.input(i).info());
    return infos;
  }

  void check_outputs(Operator op, const Contract& contract) const {
    std::vector<TensorInfo> inputs;
    for (int i = 0; i < op.input_count(); ++i) inputs.push_back(info(op.input(i)));
    const std::vector<TensorInfo> inferred = contract.infer(inputs);
    for (int i = 0; i < op.output_count(); ++i) {
      const TensorInfo expected = info(op.output(i));
      const TensorInfo& got = inferred.at(static_cast<std::size_t>(i));
      if (got == expected) continue;
      throw Error("with_batch_size", "output " + std::to_string(i) + " of the " + std::string(op.type()) +
                                         " for " + std::to_string(samples_) + " samples is " + got.text() +
                                         ", its split rule promises " + expected.text());
    }
  }

  Error no_rule(Operator op) const {
    std::string inputs;
    for (int i = 0; i < op.input_count(); ++i) {
      const int dimension = dimension_[op.input(i).index()];
      inputs += (i > 0 ? ", " : "") + op.input(i).path();
      inputs += dimension < 0 ? " whole" : " along dimension " + std::to_string(dimension);
    }
    return Error("with_batch_size",
                 "no split rule of " + std::string(op.type()) + " fits a batch of " +
                     std::to_string(samples_) + " samples instead of " + std::to_string(batch_) +
                     (inputs.empty() ? std::string() : " (the batch lies in its inputs: " + inputs + ")"),
                 "build the graph anew for this number of samples")
        .at(op.path());
  }

  Graph& graph_;
  std::int64_t batch_;
  std::int64_t samples_;
  Consumers consumers_;
  std::vector<int> dimension_;  // of each tensor: the one that holds the batch, or SplitRule::whole
  std::vector<std::optional<SplitRule>> rules_;  // of the operators that the batch meets
  std::set<std::uint32_t> open_;
};

std::string leading_text(Tensor tensor) {
  return tensor.path() + " is " + tensor.info().text();
}

}  // namespace

std::int64_t batch_size(Graph& graph) {
  if (graph.batch_recipe().make) return graph.batch_recipe().samples;
  Tensor found;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (!graph.op(i).contract().brings_samples()) continue;
    const Tensor tensor = graph.op(i).output();
    if (tensor.shape().rank() == 0) {
      throw Error("batch_size", "the source's output is a scalar, its leading dimension should be the batch")
          .at(tensor.path());
    }
    if (found.valid() && found.shape()[0] != tensor.shape()[0]) {
      throw Error("batch_size", "the data sources bring different numbers of samples: " +
                                    leading_text(found) + ", " + leading_text(tensor));
    }
    if (!found.valid()) found = tensor;
  }
  for (const Tensor input : graph.inputs()) {
    if (!found.valid() && input.shape().rank() > 0) found = input;
  }
  if (!found.valid()) {
    throw Error("batch_size", "the graph has neither a data source nor an input with dimensions",
                "samples come from a source (purine/data) or from Graph::input");
  }
  return found.shape()[0];
}

void with_batch_size(Graph& from, std::int64_t samples, Graph& out) {
  const std::int64_t batch = batch_size(from);
  if (samples < 1) {
    throw Error("with_batch_size",
                "a batch has at least 1 sample, " + std::to_string(samples) + " were asked for");
  }
  if (batch < 1) throw Error("with_batch_size", "the graph's batch has no samples");
  if (from.batch_recipe().make) {
    from.batch_recipe().make(samples, out);
    return;
  }
  BatchFlow flow(from, batch, samples);
  flow.run();
  CopyHooks hooks;
  hooks.contract = [&](Operator op) { return flow.contract(op); };
  hooks.input = [&](Tensor input) { return flow.info(input); };
  copy_graph(from, out, hooks);
}

}  // namespace purine
