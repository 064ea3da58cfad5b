#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

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
std::string VertexTexts::with(std::size_t index, Function&& function) const {
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
