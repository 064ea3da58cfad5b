#include "purine/gradient/recompute.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "purine/core/error.h"
#include "purine/gradient/gradient.h"
#include "purine/graph/transform.h"
#include "purine/ops/after.h"

namespace purine {
namespace {

/// What of a graph is backward pass, and which of its readers can be made to read a copy.
class BackwardPass {
 public:
  explicit BackwardPass(Graph& graph)
      : graph_(graph), gradient_(graph.operator_count()), from_samples_(graph.tensor_count(), false) {
    for (const Tensor input : graph.inputs()) from_samples_[input.index()] = true;
    for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
      const Operator op = graph.op(i);
      gradient_[i] = is_gradient(op);
      const std::vector<Tensor> inputs = op.inputs();
      const bool varies = op.contract().brings_samples() ||
                          std::any_of(inputs.begin(), inputs.end(),
                                      [&](Tensor input) { return from_samples_[input.index()]; });
      for (const Tensor output : op.outputs()) from_samples_[output.index()] = varies;
    }
  }

  bool has(Operator op) const { return gradient_[op.index()]; }

  /// The gradient that an operator of the backward pass reads, the one made last; not valid for others. One
  /// that depends on no sample, like the loss's by itself, is there from the beginning.
  Tensor gradient_read_by(Operator op) const {
    Tensor found;
    if (!has(op)) return found;
    for (const Tensor input : op.inputs()) {
      if (!input.has_producer() || !has(input.producer()) || !from_samples_[input.index()]) continue;
      if (!(input.location() == op.location())) continue;
      if (!found || input.index() > found.index()) found = input;
    }
    return found;
  }

  bool can_run_again(Operator op) const {
    const Contract& contract = op.contract();
    if (has(op) || contract.brings_samples() || contract.crosses_locations() || contract.has_side_effect())
      return false;
    const std::vector<Tensor> inputs = op.inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](Tensor input) { return !graph_.is_variable(input); });
  }

 private:
  Graph& graph_;
  std::vector<bool> gradient_;      // by operator
  std::vector<bool> from_samples_;  // by tensor
};

/// Finds what need not be kept.
class Finder {
 public:
  explicit Finder(Graph& graph)
      : graph_(graph),
        backward_(graph),
        consumers_(graph),
        source_(graph.tensor_count()),
        kept_(graph.tensor_count(), false) {
    for (std::uint32_t t = 0; t < graph.tensor_count(); ++t) source_[t] = t;
    for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
      const Operator op = graph.op(i);
      for (const Sharing& sharing : op.contract().sharing()) {
        if (sharing.kind != Sharing::Kind::view) continue;
        source_[op.output(sharing.output).index()] = source_[op.input(sharing.input).index()];
      }
      if (!backward_.gradient_read_by(op)) continue;
      for (const Tensor input : op.inputs()) {
        if (!input.has_producer() || backward_.has(input.producer())) continue;
        kept_[source_[input.index()]] = true;
        read_.insert(input.index());
      }
    }
  }

  std::vector<Recomputation> run() {
    std::vector<Recomputation> found;
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      const Operator op = graph_.op(i);
      Recomputation way;
      for (const Tensor output : op.outputs()) {
        if (source_[output.index()] == output.index() && kept_[output.index()]) {
          way.bytes += output.info().bytes();
        }
      }
      std::set<std::uint32_t> operators;
      if (way.bytes == 0 || !add(op, operators)) continue;
      for (const Tensor output : op.outputs()) add_views(output, operators);
      for (const std::uint32_t index : operators) {
        way.operators.push_back(graph_.op(index));
        way.moved += cost_of(way.operators.back()).bytes;
      }
      constexpr double least_share = 0.02;
      if (static_cast<double>(way.bytes) >= least_share * way.moved) found.push_back(std::move(way));
    }
    const auto share = [](const Recomputation& way) {
      return static_cast<double>(way.bytes) / std::max(way.moved, 1.0);
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Recomputation& a, const Recomputation& b) { return share(a) > share(b); });
    return found;
  }

 private:
  /// Adds an operator and those that make what it reads, back to what is kept. False if that can't be, or
  /// costs too much.
  bool add(Operator op, std::set<std::uint32_t>& operators) const {
    if (operators.contains(op.index())) return true;
    if (!backward_.can_run_again(op) || !is_bound_by_memory(op)) return false;
    operators.insert(op.index());
    for (const Tensor input : op.inputs()) {
      if (!input.has_producer() || kept_[source_[input.index()]]) continue;
      if (input.producer().contract().brings_samples()) continue;
      if (!add(input.producer(), operators)) return false;
    }
    return true;
  }

  /// Adds the views of a tensor that the backward pass reads, and those that they are views of.
  bool add_views(Tensor tensor, std::set<std::uint32_t>& operators) const {
    bool is_read = read_.contains(tensor.index());
    for (const std::uint32_t consumer : consumers_.of(tensor.index())) {
      const Operator view = graph_.op(consumer);
      if (!backward_.can_run_again(view)) continue;
      for (const Tensor output : view.outputs()) {
        if (source_[output.index()] != source_[tensor.index()] || !add_views(output, operators)) continue;
        operators.insert(consumer);
        is_read = true;
      }
    }
    return is_read;
  }

  static Cost cost_of(Operator op) {
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
    for (const Tensor input : op.inputs()) inputs.push_back(input.info());
    for (const Tensor output : op.outputs()) outputs.push_back(output.info());
    return op.contract().cost(inputs, outputs);
  }

  /// A core does some ten operations in the time in which it moves a byte; what does fewer costs a pass over
  /// memory.
  static bool is_bound_by_memory(Operator op) {
    constexpr double operations_per_byte = 5;
    const Cost cost = cost_of(op);
    return cost.operations <= operations_per_byte * cost.bytes;
  }

  Graph& graph_;
  BackwardPass backward_;
  Consumers consumers_;
  std::vector<std::uint32_t> source_;  // by tensor: itself, or what it is a view of
  std::vector<bool> kept_;             // by tensor that is no view: the backward pass reads it
  std::set<std::uint32_t> read_;       // of the tensors that are not its own, those that it reads
};

/// Makes the graph in which operators run again.
class Recomputer {
 public:
  Recomputer(Graph& from, std::span<const std::string> operators, Graph& to)
      : from_(from),
        to_(to),
        backward_(from),
        again_(from.operator_count(), false),
        mapped_(from.tensor_count()) {
    std::set<std::string> wanted(operators.begin(), operators.end());
    std::set<std::string> roots;
    for (std::uint32_t i = 0; i < from.operator_count(); ++i) {
      const Operator op = from.op(i);
      const std::string path = op.path();
      roots.insert(path.substr(0, path.find('/')));
      if (wanted.erase(path) == 0) continue;
      if (!backward_.can_run_again(op)) {
        throw Error("recompute", "a " + std::string(op.type()) + " here can't run again",
                    "operators of the forward pass that read more than variables can")
            .at(path);
      }
      again_[i] = true;
    }
    if (!wanted.empty()) throw Error("recompute", "the graph has no such operator").at(*wanted.begin());
    suffix_ = "again";
    const auto is_taken = [&](const std::string& root) { return root.ends_with(suffix_); };
    for (int number = 2; std::any_of(roots.begin(), roots.end(), is_taken); ++number) {
      suffix_ = "again" + std::to_string(number);
    }
  }

  std::vector<Tensor> run() {
    for (std::uint32_t i = 0; i < from_.operator_count(); ++i) {
      const Operator op = from_.op(i);
      if (op.output_count() > 0) add_leaves(op.output(0).index());
      std::vector<Tensor> inputs;
      const Tensor gradient = backward_.gradient_read_by(op);
      for (const Tensor input : op.inputs()) inputs.push_back(gradient ? late(input, op) : at(input));
      const std::string path = op.path();
      const auto outputs = add(op, inputs, scope_of(path), path.substr(path.rfind('/') + 1)).outputs();
      for (int k = 0; k < op.output_count(); ++k) mapped_[op.output(k).index()] = outputs[k];
    }
    add_leaves(from_.tensor_count());
    for (const Variable variable : from_.variables()) {
      if (variable.has_next()) to_.set_next(to_.as_variable(at(variable)), at(variable.next()));
    }
    for (const Tensor tensor : from_.watched()) to_.watch(at(tensor));
    return mapped_;
  }

 private:
  Tensor at(Tensor tensor) const { return mapped_[tensor.index()]; }

  static std::string scope_of(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
  }

  void add_leaves(std::uint32_t end) {
    for (; next_leaf_ < end; ++next_leaf_) {
      const Tensor tensor = from_.tensor(next_leaf_);
      if (tensor.has_producer()) continue;
      const auto place = to_.at(tensor.location());
      if (from_.is_variable(tensor)) {
        const Variable variable = from_.as_variable(tensor);
        mapped_[next_leaf_] =
            to_.variable(variable.path(), variable.info(), variable.initial().shared_from_this(),
                         {.trainable = variable.trainable(), .decays = variable.decays()});
      } else {
        mapped_[next_leaf_] = to_.input(tensor.path(), tensor.info());
      }
    }
  }

  Operator add(Operator op, std::span<const Tensor> inputs, const std::string& scope_path,
               const std::string& name) {
    const auto scope = to_.reopen_scope(to_.scope_number({}, scope_path));
    const auto place = to_.at(op.location());
    return to_.add(op.contract_pointer(), inputs, name);
  }

  /// What an operator of the backward pass reads.
  Tensor late(Tensor input, Operator reader) {
    if (!input.has_producer() || !again_[input.producer().index()]) return at(input);
    if (!(input.location() == reader.location())) return at(input);
    return copy_of(input.producer(), at(backward_.gradient_read_by(reader)))[input.output_index()];
  }

  std::vector<Tensor> copy_of(Operator op, Tensor gradient) {
    const auto found = copies_.find(op.index());
    if (found != copies_.end()) return found->second;
    const std::string path = op.path();
    const std::string_view logical = logical_path(path);
    const std::string root = logical.size() == path.size()
                                 ? "@" + suffix_
                                 : path.substr(0, path.size() - logical.size() - 1) + "_" + suffix_;
    const std::string copy_path = root + "/" + std::string(logical);
    std::vector<Tensor> inputs;
    for (const Tensor input : op.inputs()) {
      if (input.has_producer() && again_[input.producer().index()]) {
        inputs.push_back(copy_of(input.producer(), gradient)[input.output_index()]);
      } else if (from_.is_variable(input)) {
        inputs.push_back(at(input));
      } else {
        const auto scope = to_.reopen_scope(to_.scope_number({}, scope_of(copy_path)));
        const auto place = to_.at(op.location());
        inputs.push_back(ops::after(at(input), std::span(&gradient, 1)));
      }
    }
    std::vector<Tensor> outputs =
        add(op, inputs, scope_of(copy_path), copy_path.substr(copy_path.rfind('/') + 1)).outputs();
    return copies_.emplace(op.index(), std::move(outputs)).first->second;
  }

  Graph& from_;
  Graph& to_;
  BackwardPass backward_;
  std::vector<bool> again_;                              // by operator
  std::vector<Tensor> mapped_;                           // by tensor
  std::map<std::uint32_t, std::vector<Tensor>> copies_;  // by operator: the copy's outputs
  std::uint32_t next_leaf_ = 0;
  std::string suffix_;
};

/// Without the operators that a graph for fewer samples doesn't have, as some of its locations get none.
std::vector<std::string> present(Graph& graph, std::span<const std::string> operators) {
  const std::set<std::string> wanted(operators.begin(), operators.end());
  std::vector<std::string> found;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (std::string path = graph.op(i).path(); wanted.contains(path)) found.push_back(std::move(path));
  }
  return found;
}

}  // namespace

std::vector<Recomputation> recomputations(Graph& graph) {
  return Finder(graph).run();
}

std::vector<Tensor> recompute(Graph& from, std::span<const std::string> operators, Graph& to) {
  if (to.tensor_count() + to.operator_count() > 0) {
    throw Error("recompute", "the graph that is made has vertices already", "pass a new Graph");
  }
  std::vector<Tensor> tensors = Recomputer(from, operators, to).run();
  const auto make = [&from, paths = std::vector<std::string>(operators.begin(), operators.end())](
                        std::int64_t samples, Graph& out) {
    const auto smaller = std::make_shared<Graph>();
    with_batch_size(from, samples, *smaller);
    recompute(*smaller, present(*smaller, paths), out);
    // `out` is made from it for yet another number of samples.
    out.set_batch_recipe({samples, [smaller, make = out.batch_recipe().make](
                                       std::int64_t count, Graph& graph) { make(count, graph); }});
  };
  const std::vector<Tensor> inputs = from.inputs();
  bool has_samples =
      from.batch_recipe().make != nullptr ||
      std::any_of(inputs.begin(), inputs.end(), [](Tensor input) { return input.shape().rank() > 0; });
  for (std::uint32_t i = 0; i < from.operator_count() && !has_samples; ++i) {
    has_samples = from.op(i).contract().brings_samples();
  }
  if (has_samples) to.set_batch_recipe({batch_size(from), make});
  return tensors;
}

}  // namespace purine
