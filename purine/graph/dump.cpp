#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "purine/core/random.h"
#include "purine/graph/records.h"
#include "purine/graph/vertex_texts.h"

namespace purine {
namespace {

std::string attributes_text(const Contract& contract) {
  const std::string attributes = contract.attributes();
  return attributes.empty() ? std::string() : " {" + attributes + "}";
}

std::string operator_line(Operator op) {
  std::string line = op.path() + " = " + std::string(op.type()) + "(";
  for (int i = 0; i < op.input_count(); ++i) line += (i > 0 ? ", " : "") + op.input(i).path();
  line += ")" + attributes_text(op.contract()) + " ->";
  for (int i = 0; i < op.output_count(); ++i) line += (i > 0 ? ", " : " ") + op.output(i).info().text();
  return line + " @" + op.location().text();
}

std::string variable_line(Variable variable) {
  std::string line = "variable " + variable.path() + ": " + variable.info().text() + " = " +
                     std::string(variable.initial().type()) + attributes_text(variable.initial());
  if (variable.trainable()) line += " trainable";
  if (variable.decays()) line += " decays";
  if (variable.has_next()) line += " next " + variable.next().path();
  return line + " @" + variable.location().text();
}

nlohmann::ordered_json tensor_json(Tensor tensor) {
  nlohmann::ordered_json shape = nlohmann::ordered_json::array();
  for (const std::int64_t extent : tensor.shape()) shape.push_back(extent);
  return {{"id", tensor.index()},
          {"path", tensor.path()},
          {"dtype", name_of(tensor.dtype())},
          {"shape", std::move(shape)},
          {"location", tensor.location().text()}};
}

/// Joins what it is given, in order.
class Hash {
 public:
  void add(std::uint64_t number) {
    value_ = (value_ ^ number) * 0x9e3779b97f4a7c15U;
    value_ ^= value_ >> 29U;
  }
  void add(std::string_view text) { add(hash_text(text)); }
  void add(const TensorInfo& info) {
    for (const std::int64_t extent : info.shape) add(static_cast<std::uint64_t>(extent));
    add(static_cast<std::uint64_t>(info.dtype) * 16 + static_cast<std::uint64_t>(info.shape.rank()));
  }
  void add(const Location& location) {
    add(static_cast<std::uint64_t>(location.rank) << 32U | static_cast<std::uint64_t>(location.index));
    add(static_cast<std::uint64_t>(location.kind));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// Hashes of vertices, of what their lines say. What many of them share is hashed once: scopes, and the
/// contract that the pieces of an operator have, which follow one another.
class VertexHasher {
 public:
  explicit VertexHasher(Graph& graph) : records_(graph) {
    texts_.reserve(records_.texts.size());
    for (const std::string& text : records_.texts) texts_.push_back(hash_text(text));
    scopes_.resize(records_.scopes.size());
    for (std::size_t i = 1; i < scopes_.size(); ++i) scopes_[i] = of_path(records_.scopes[i]);
  }

  std::uint64_t operator()(Operator op) {
    const GraphRecords::OperatorRecord& record = records_.operators[op.index()];
    Hash hash;
    hash.add(of_path(record.name));
    hash.add(of_contract(*record.contract));
    for (std::uint32_t i = 0; i < record.input_count; ++i) {
      hash.add(records_.operator_inputs[record.first_input + i]);
    }
    for (std::uint32_t i = 0; i < record.output_count; ++i) {
      hash.add(records_.infos[records_.tensors[record.first_output + i].info]);
    }
    hash.add(records_.locations[record.location]);
    return hash.value();
  }

  std::uint64_t operator()(Variable variable) {
    Hash hash;
    hash.add((*this)(static_cast<const Tensor&>(variable)));
    hash.add(of_contract(variable.initial()));
    hash.add(std::uint64_t{variable.trainable()} * 2 + std::uint64_t{variable.decays()});
    if (variable.has_next()) hash.add(variable.next().index());
    return hash.value();
  }

  std::uint64_t operator()(Tensor tensor) {
    const GraphRecords::TensorRecord& record = records_.tensors[tensor.index()];
    Hash hash;
    if (record.producer != GraphRecords::none) {
      hash.add(of_path(records_.operators[record.producer].name));
      hash.add(std::uint64_t{record.extra});
    } else {
      hash.add(of_path(tensor.graph().is_variable(tensor) ? records_.variables[record.extra].name
                                                          : records_.inputs[record.extra].name));
    }
    hash.add(records_.infos[record.info]);
    hash.add(records_.locations[record.location]);
    return hash.value();
  }

 private:
  std::uint64_t of_path(const GraphRecords::Name& name) const {
    Hash hash;
    hash.add(scopes_[name.scope]);
    hash.add(texts_[name.base]);
    hash.add(std::uint64_t{name.number});
    return hash.value();
  }

  std::uint64_t of_contract(const Contract& contract) {
    if (&contract == contract_) return contract_hash_;
    Hash hash;
    hash.add(contract.type());
    hash.add(contract.attributes());
    contract_ = &contract;
    contract_hash_ = hash.value();
    return contract_hash_;
  }

  GraphRecords records_;
  std::vector<std::uint64_t> texts_;
  std::vector<std::uint64_t> scopes_;   // an outer one comes before those in it
  const Contract* contract_ = nullptr;  // the last one
  std::uint64_t contract_hash_ = 0;
};

template <typename Tensors>
nlohmann::ordered_json ids(const Tensors& tensors) {
  nlohmann::ordered_json ids = nlohmann::ordered_json::array();
  for (const Tensor tensor : tensors) ids.push_back(tensor.index());
  return ids;
}

nlohmann::ordered_json operator_json(Operator op) {
  return {{"id", op.index()},
          {"path", op.path()},
          {"type", op.type()},
          {"attributes", op.contract().attributes()},
          {"inputs", ids(op.inputs())},
          {"outputs", ids(op.outputs())},
          {"location", op.location().text()}};
}

nlohmann::ordered_json variable_json(Variable variable) {
  return {{"tensor", variable.index()},
          {"initial", variable.initial().type()},
          {"initial_attributes", variable.initial().attributes()},
          {"trainable", variable.trainable()},
          {"decays", variable.decays()},
          {"next", variable.has_next() ? nlohmann::ordered_json(variable.next().index())
                                       : nlohmann::ordered_json(nullptr)}};
}

/// `"key": [` and one vertex a line.
template <typename Function>
void append_list(std::string& text, const char* key, std::size_t count, Function&& item) {
  text += std::string("\"") + key + "\": [";
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? ",\n  " : "\n  ") + item(i).dump();
  text += count > 0 ? "\n],\n" : "],\n";
}

}  // namespace

template <typename Function>
auto VertexTexts::with(std::size_t index, Function&& function) const {
  PURINE_CHECK(index < size_);
  if (index < inputs_.size()) return function(inputs_[index]);
  index -= inputs_.size();
  if (index < variables_.size()) return function(variables_[index]);
  index -= variables_.size();
  if (index < graph_.operator_count()) return function(graph_.op(static_cast<std::uint32_t>(index)));
  return function(watched_[index - graph_.operator_count()]);
}

std::string VertexTexts::text(std::size_t index) const {
  return with(index, [&](auto vertex) {
    if constexpr (std::is_same_v<decltype(vertex), Operator>) {
      return operator_line(vertex);
    } else if constexpr (std::is_same_v<decltype(vertex), Variable>) {
      return variable_line(vertex);
    } else if (index < inputs_.size()) {
      return "input " + vertex.path() + ": " + vertex.info().text() + " @" + vertex.location().text();
    } else {
      return "watch " + vertex.path();
    }
  });
}

std::string VertexTexts::path(std::size_t index) const {
  return with(index, [](auto vertex) { return vertex.path(); });
}

std::vector<std::uint64_t> VertexTexts::hashes() const {
  VertexHasher hasher(graph_);
  std::vector<std::uint64_t> hashes(size_);
  for (std::size_t i = 0; i < size_; ++i) hashes[i] = with(i, hasher);
  return hashes;
}

std::string dump(Graph& graph) {
  const VertexTexts vertices(graph);
  std::string text;
  for (std::size_t i = 0; i < vertices.size(); ++i) text += vertices.text(i) + "\n";
  return text;
}

std::string json(Graph& graph) {
  const std::vector<Variable> variables = graph.variables();
  std::string text = "{\n";
  append_list(text, "tensors", graph.tensor_count(),
              [&](std::size_t i) { return tensor_json(graph.tensor(static_cast<std::uint32_t>(i))); });
  append_list(text, "operators", graph.operator_count(),
              [&](std::size_t i) { return operator_json(graph.op(static_cast<std::uint32_t>(i))); });
  append_list(text, "variables", variables.size(),
              [&](std::size_t i) { return variable_json(variables[i]); });
  text += "\"inputs\": " + ids(graph.inputs()).dump() + ",\n";
  text += "\"watched\": " + ids(graph.watched()).dump() + "\n}\n";
  return text;
}

}  // namespace purine
