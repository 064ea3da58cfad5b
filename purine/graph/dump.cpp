#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "purine/core/random.h"
#include "purine/graph/graph.h"
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

std::uint64_t VertexTexts::hash(std::size_t index) const {
  return with(index, [&](auto vertex) {
    Hash hash;
    hash.add(vertex.path());
    if constexpr (std::is_same_v<decltype(vertex), Operator>) {
      hash.add(vertex.type());
      hash.add(vertex.contract().attributes());
      for (int i = 0; i < vertex.input_count(); ++i) hash.add(vertex.input(i).index());
      for (int i = 0; i < vertex.output_count(); ++i) hash.add(vertex.output(i).info());
      hash.add(vertex.location());
    } else {
      hash.add(vertex.info());
      hash.add(vertex.location());
    }
    if constexpr (std::is_same_v<decltype(vertex), Variable>) {
      hash.add(vertex.initial().type());
      hash.add(vertex.initial().attributes());
      hash.add(std::uint64_t{vertex.trainable()} * 2 + std::uint64_t{vertex.decays()});
      if (vertex.has_next()) hash.add(vertex.next().index());
    }
    return hash.value();
  });
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
