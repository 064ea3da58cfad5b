#include "purine/core/error.h"
#include "purine/graph/records.h"
#include "purine/graph/transform.h"

namespace purine {

void GraphRecords::copy_names(const Graph& from, Graph& to) {
  to.scopes_ = from.scopes_;
  to.scope_index_ = from.scope_index_;
  to.next_number_ = from.next_number_;
  to.taken_out_of_order_ = from.taken_out_of_order_;
  to.leaf_index_ = from.leaf_index_;
  for (const std::string& text : from.texts_) to.intern_text(text);
}

namespace {

class Copier {
 public:
  Copier(Graph& from, Graph& to, const CopyHooks& hooks)
      : from_(from), to_(to), hooks_(hooks), source_(from), target_(to) {}

  void run() {
    if (to_.tensor_count() + to_.operator_count() > 0) {
      throw Error("copy_graph", "the graph that is copied into has vertices already", "pass a new Graph");
    }
    GraphRecords::copy_names(from_, to_);
    // Vertices keep their numbers, so inputs and variables come between operators as they did.
    for (std::uint32_t index = 0; index < from_.operator_count(); ++index) {
      add_leaves(source_.operators[index].first_output);
      add_operator(from_.op(index));
    }
    add_leaves(from_.tensor_count());
    for (Variable variable : from_.variables()) {
      if (!variable.has_next()) continue;
      to_.set_next(Variable(&to_, variable.index()), to_.tensor(variable.next().index()));
    }
    for (const Tensor tensor : from_.watched()) to_.watch(to_.tensor(tensor.index()));
  }

 private:
  void add_leaves(std::uint32_t end) {
    while (target_.tensors.size() < end) {
      const auto index = static_cast<std::uint32_t>(target_.tensors.size());
      const Tensor tensor = from_.tensor(index);
      GraphRecords::TensorRecord record = source_.tensors[index];
      const Location location = hooks_.leaf_location ? hooks_.leaf_location(tensor) : tensor.location();
      record.location = GraphRecords::intern(to_, location);
      if (from_.is_variable(tensor)) {
        GraphRecords::VariableRecord variable = source_.variables[record.extra];
        TensorInfo info = tensor.info();
        if (hooks_.initial) {
          variable.initial = hooks_.initial(from_.as_variable(tensor));
          info = variable.initial->infer({}).at(0);
        }
        record.info = GraphRecords::intern(to_, info);
        variable.next = GraphRecords::none;
        target_.variables.push_back(std::move(variable));
      } else {
        record.info = GraphRecords::intern(to_, hooks_.input ? hooks_.input(tensor) : tensor.info());
        target_.inputs.push_back(source_.inputs[record.extra]);
      }
      target_.tensors.push_back(record);
    }
  }

  void add_operator(Operator op) {
    GraphRecords::OperatorRecord record = source_.operators[op.index()];
    if (hooks_.contract) record.contract = hooks_.contract(op);
    record.location = GraphRecords::intern(to_, hooks_.location ? hooks_.location(op) : op.location());
    infos_.clear();
    for (int i = 0; i < op.input_count(); ++i) {
      const std::uint32_t input = op.input(i).index();
      target_.operator_inputs.push_back(input);
      infos_.push_back(to_.tensor(input).info());
    }
    std::vector<TensorInfo> outputs;
    try {
      outputs = record.contract->infer(infos_);
      if (outputs.size() != record.output_count) {
        throw Error(record.contract->type(), "has " + std::to_string(outputs.size()) + " outputs, the " +
                                                 std::string(op.type()) + " that it replaces has " +
                                                 std::to_string(record.output_count));
      }
    } catch (const Error& error) {
      throw error.at(op.path());
    }
    for (std::uint32_t i = 0; i < record.output_count; ++i) {
      target_.tensors.push_back({op.index(), GraphRecords::intern(to_, outputs[i]), i, record.location});
    }
    record.first_input = static_cast<std::uint32_t>(target_.operator_inputs.size()) - record.input_count;
    target_.operators.push_back(std::move(record));
  }

  Graph& from_;
  Graph& to_;
  const CopyHooks& hooks_;
  GraphRecords source_;
  GraphRecords target_;
  std::vector<TensorInfo> infos_;
};

}  // namespace

void copy_graph(Graph& from, Graph& to, const CopyHooks& hooks) {
  Copier(from, to, hooks).run();
}

}  // namespace purine
