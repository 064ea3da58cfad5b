#include <nlohmann/json.hpp>
#include <string>

#include "purine/graph/graph.h"

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
  return line + " @" + op.location().text() + "\n";
}

std::string variable_line(Variable variable) {
  std::string line = "variable " + variable.path() + ": " + variable.info().text() + " = " +
                     std::string(variable.initial().type()) + attributes_text(variable.initial());
  if (variable.trainable()) line += " trainable";
  if (variable.decays()) line += " decays";
  if (variable.has_next()) line += " next " + variable.next().path();
  return line + " @" + variable.location().text() + "\n";
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

std::string dump(Graph& graph) {
  std::string text;
  for (const Tensor input : graph.inputs()) {
    text += "input " + input.path() + ": " + input.info().text() + " @" + input.location().text() + "\n";
  }
  for (const Variable variable : graph.variables()) text += variable_line(variable);
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) text += operator_line(graph.op(i));
  for (const Tensor tensor : graph.watched()) text += "watch " + tensor.path() + "\n";
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
