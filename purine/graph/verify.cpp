#include <algorithm>
#include <bit>
#include <string>
#include <unordered_set>
#include <vector>

#include "purine/core/error.h"
#include "purine/graph/records.h"

namespace purine {
namespace {

/// Checks in an order in which each may rely on those before it: first that indices lead somewhere, so that
/// paths can be written, then what the graph means.
class Verifier {
 public:
  explicit Verifier(Graph& graph) : graph_(graph), records_(graph) {}

  void run() {
    check_tables();
    check_tensors();
    check_operators();
    check_names();
    for (std::uint32_t index = 0; index < graph_.operator_count(); ++index) {
      const Operator op = graph_.op(index);
      check_order(op);
      check_infos(op);
      check_locations(op);
    }
    check_variables();
    check_watched();
  }

 private:
  static constexpr std::uint32_t none = GraphRecords::none;

  static Error error(std::string_view message, std::string_view hint = {}) {
    return Error("verify", message, hint);
  }

  void check_name(const GraphRecords::Name& name, std::size_t scopes, const std::string& what) const {
    if (name.scope >= scopes || name.base >= records_.texts.size()) throw error(what + " has no valid name");
  }

  void check_tables() const {
    for (std::size_t i = 1; i < records_.scopes.size(); ++i) {
      check_name(records_.scopes[i], i, "scope " + std::to_string(i));
    }
    const auto check = [&](const auto& records, const char* what) {
      for (std::size_t i = 0; i < records.size(); ++i) {
        const GraphRecords::Name& name = records[i].name;
        if (name.scope >= records_.scopes.size() || name.base >= records_.texts.size()) {
          check_name(name, records_.scopes.size(), what + std::to_string(i));
        }
      }
    };
    check(records_.operators, "operator ");
    check(records_.variables, "variable ");
    check(records_.inputs, "input ");
  }

  /// Bipartite: a tensor has one producer, which knows it as its output, or is one variable or one input.
  void check_tensors() const {
    const auto bad = [](std::size_t tensor, const std::string& message) {
      return error("tensor " + std::to_string(tensor) + " " + message);
    };
    const auto owns = [&](const auto& records, std::size_t tensor) {
      const std::uint32_t record = records_.tensors[tensor].extra;
      return record < records.size() && records[record].tensor == tensor;
    };
    for (std::size_t i = 0; i < records_.tensors.size(); ++i) {
      const GraphRecords::TensorRecord& tensor = records_.tensors[i];
      if (tensor.info >= records_.infos.size()) throw bad(i, "has no shape and dtype");
      if (tensor.location >= records_.locations.size()) throw bad(i, "has no location");
      if (tensor.producer != none) {
        if (tensor.producer >= records_.operators.size()) throw bad(i, "has a producer that does not exist");
        const GraphRecords::OperatorRecord& producer = records_.operators[tensor.producer];
        if (tensor.extra >= producer.output_count || producer.first_output + tensor.extra != i) {
          throw bad(i, "is said to be output " + std::to_string(tensor.extra) + " of " +
                           graph_.op(tensor.producer).path() + ", which does not have it");
        }
      } else if (owns(records_.variables, i) == owns(records_.inputs, i)) {
        throw bad(i, "has no producer and must be one variable or one input");
      }
    }
  }

  void check_operators() const {
    for (std::uint32_t index = 0; index < graph_.operator_count(); ++index) {
      const GraphRecords::OperatorRecord& record = records_.operators[index];
      const Operator op = graph_.op(index);
      if (record.contract == nullptr) throw error("has no contract").at(op.path());
      if (record.location >= records_.locations.size()) throw error("has no location").at(op.path());
      const std::size_t inputs = record.first_input + std::size_t{record.input_count};
      const std::size_t outputs = record.first_output + std::size_t{record.output_count};
      if (inputs > records_.operator_inputs.size() || outputs > records_.tensors.size()) {
        throw error("has inputs or outputs that do not exist").at(op.path());
      }
      for (std::size_t i = record.first_input; i < inputs; ++i) {
        if (records_.operator_inputs[i] >= records_.tensors.size()) {
          throw error("input " + std::to_string(i - record.first_input) + " does not exist").at(op.path());
        }
      }
      for (std::size_t i = record.first_output; i < outputs; ++i) {
        const std::uint32_t producer = records_.tensors[i].producer;
        if (producer == index) continue;
        const std::string owner = producer == none ? "is a variable or input"
                                                   : "has a producer already, " + graph_.op(producer).path();
        throw error("output " + std::to_string(i - record.first_output) + " is tensor " + std::to_string(i) +
                        ", which " + owner,
                    "a tensor has one producer")
            .at(op.path());
      }
    }
  }

  void check_names() const {
    // A hash table of pointers to names, at most half full.
    const std::size_t count = records_.operators.size() + records_.variables.size() + records_.inputs.size();
    std::vector<const GraphRecords::Name*> seen(std::bit_ceil(2 * count + 1), nullptr);
    const auto check = [&](const GraphRecords::Name& name, auto vertex) {
      std::size_t at = GraphRecords::NameHash()(name) & (seen.size() - 1);
      while (seen[at] != nullptr && !(*seen[at] == name)) at = (at + 1) & (seen.size() - 1);
      if (seen[at] != nullptr) {
        throw error("another vertex has the same path", "paths name random streams and checkpoints")
            .at(vertex.path());
      }
      seen[at] = &name;
    };
    for (const auto& input : records_.inputs) check(input.name, Tensor(&graph_, input.tensor));
    for (const auto& variable : records_.variables) check(variable.name, Tensor(&graph_, variable.tensor));
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      check(records_.operators[i].name, graph_.op(i));
    }
  }

  /// Acyclic within an iteration, and numbered in a topological order.
  void check_order(Operator op) const {
    const std::uint32_t first_output = records_.operators[op.index()].first_output;
    for (int i = 0; i < op.input_count(); ++i) {
      const Tensor input = op.input(i);
      const bool later = input.has_producer() ? input.producer().index() >= op.index()
                                              : op.output_count() > 0 && input.index() >= first_output;
      if (!later) continue;
      const std::vector<std::uint32_t> cycle = find_cycle(op, input);
      if (cycle.empty()) {
        throw error("reads " + input.path() + ", which comes after it",
                    "vertices are numbered in a topological order: add an operator after its inputs")
            .at(op.path());
      }
      std::string text;
      for (const std::uint32_t member : cycle) text += graph_.op(member).path() + " -> ";
      throw error("depends on its own result within an iteration: " + text + op.path(),
                  "a value of the iteration before comes from a variable: Graph::set_next")
          .at(op.path());
    }
  }

  /// Operators from `op` on along its result to `input`'s producer; empty if there is no such way.
  std::vector<std::uint32_t> find_cycle(Operator op, Tensor input) const {
    if (!input.has_producer()) return {};
    // Backwards from the input; `reader` remembers the way, and is followed forwards from `op`.
    std::vector<std::uint32_t> reader(graph_.operator_count(), none);
    std::vector<std::uint32_t> open = {input.producer().index()};
    reader[open.front()] = op.index();
    while (!open.empty() && open.back() != op.index()) {
      const std::uint32_t index = open.back();
      open.pop_back();
      for (const Tensor tensor : graph_.op(index).inputs()) {
        if (!tensor.has_producer() || reader[tensor.producer().index()] != none) continue;
        reader[tensor.producer().index()] = index;
        open.push_back(tensor.producer().index());
      }
    }
    if (open.empty()) return {};
    std::vector<std::uint32_t> cycle = {op.index()};
    for (std::uint32_t next = reader[op.index()]; next != op.index(); next = reader[next]) {
      cycle.push_back(next);
    }
    return cycle;
  }

  /// An operator of the contract, shapes and dtypes of the one before it is as that one: so are most pieces
  /// of a divided operator.
  bool is_like_previous(Operator op) const {
    if (op.index() == 0) return false;
    const GraphRecords::OperatorRecord& here = records_.operators[op.index()];
    const GraphRecords::OperatorRecord& previous = records_.operators[op.index() - 1];
    if (here.contract != previous.contract || here.input_count != previous.input_count ||
        here.output_count != previous.output_count) {
      return false;
    }
    const auto info = [&](std::uint32_t tensor) { return records_.tensors[tensor].info; };
    for (std::uint32_t i = 0; i < here.input_count; ++i) {
      if (info(records_.operator_inputs[here.first_input + i]) !=
          info(records_.operator_inputs[previous.first_input + i])) {
        return false;
      }
    }
    for (std::uint32_t i = 0; i < here.output_count; ++i) {
      if (info(here.first_output + i) != info(previous.first_output + i)) return false;
    }
    return true;
  }

  void check_infos(Operator op) {
    if (is_like_previous(op)) return;
    infos_.clear();
    for (int i = 0; i < op.input_count(); ++i) infos_.push_back(op.input(i).info());
    std::vector<TensorInfo> inferred;
    try {
      inferred = op.contract().infer(infos_);
    } catch (const Error& failure) {
      throw failure.at(op.path());
    }
    if (inferred.size() != static_cast<std::size_t>(op.output_count())) {
      throw error("has " + std::to_string(op.output_count()) + " outputs, its contract " +
                  std::string(op.type()) + " infers " + std::to_string(inferred.size()))
          .at(op.path());
    }
    for (int i = 0; i < op.output_count(); ++i) {
      const TensorInfo& expected = inferred[static_cast<std::size_t>(i)];
      if (op.output(i).info() == expected) continue;
      throw error("output " + std::to_string(i) + " is " + op.output(i).info().text() + ", its contract " +
                  std::string(op.type()) + " infers " + expected.text())
          .at(op.path());
    }
  }

  void check_locations(Operator op) const {
    for (int i = 0; i < op.output_count(); ++i) {
      if (op.output(i).location() == op.location()) continue;
      throw error("output " + std::to_string(i) + " is at " + op.output(i).location().text() +
                  ", the operator at " + op.location().text())
          .at(op.path());
    }
    if (op.contract().crosses_locations()) return;
    for (int i = 0; i < op.input_count(); ++i) {
      if (op.input(i).location() == op.location()) continue;
      throw error("reads " + op.input(i).path() + " at " + op.input(i).location().text() +
                      ", the operator is at " + op.location().text(),
                  "Copy alone crosses locations: copy the tensor first, or place both together")
          .at(op.path());
    }
  }

  void check_variables() {
    for (const GraphRecords::VariableRecord& record : records_.variables) {
      const Variable variable(&graph_, record.tensor);
      if (record.initial == nullptr) throw error("has no initial value").at(variable.path());
      const std::vector<TensorInfo> inferred = record.initial->infer({});
      if (inferred.size() != 1 || !(inferred[0] == variable.info())) {
        throw error("is " + variable.info().text() + ", its initial value " +
                    (inferred.empty() ? "is nothing" : inferred[0].text()))
            .at(variable.path());
      }
      if (record.next == none) continue;
      if (record.next >= records_.tensors.size()) {
        throw error("has a next value that does not exist").at(variable.path());
      }
      const Tensor next = variable.next();
      if (!(next.info() == variable.info())) {
        throw error("is " + variable.info().text() + ", its next value " + next.path() + " is " +
                    next.info().text())
            .at(variable.path());
      }
      if (!(next.location() == variable.location())) {
        throw error("is at " + variable.location().text() + ", its next value " + next.path() + " at " +
                        next.location().text(),
                    "a variable stays where it is: copy the next value to its location")
            .at(variable.path());
      }
    }
  }

  void check_watched() const {
    std::unordered_set<std::uint32_t> seen;
    for (const std::uint32_t tensor : records_.watched) {
      if (tensor >= records_.tensors.size()) throw error("a watched tensor does not exist");
      if (!seen.insert(tensor).second) {
        throw error("is watched twice").at(Tensor(&graph_, tensor).path());
      }
    }
  }

  Graph& graph_;
  GraphRecords records_;
  std::vector<TensorInfo> infos_;
};

}  // namespace

void verify(Graph& graph) {
  Verifier(graph).run();
}

}  // namespace purine
