#include "purine/train/graph_identity.h"

#include <fmt/format.h>

#include <utility>

#include "purine/core/random.h"

namespace purine::train {
namespace {

constexpr std::string_view copy_type = "copy";
constexpr const char* variables_part = "variables";
constexpr const char* inputs_part = "inputs";
constexpr const char* watched_part = "watched tensors";

// The tensor that copies brought here.
Tensor original(Tensor tensor) {
  while (tensor.has_producer() && tensor.producer().type() == copy_type) tensor = tensor.producer().input(0);
  return tensor;
}

std::string text_of(Operator op) {
  std::string text = op.path() + "(";
  for (int i = 0; i < op.input_count(); ++i) text += original(op.input(i)).path() + ",";
  text += fmt::format("){{{}}}", op.contract().attributes());
  for (int i = 0; i < op.output_count(); ++i) text += op.output(i).info().text();
  return text;
}

std::string text_of(const Variable& variable) {
  const Contract& initial = variable.initial();
  return fmt::format("{}:{}={}{{{}}}{}{} {}", variable.path(), variable.info().text(), initial.type(),
                     initial.attributes(), variable.trainable(), variable.decays(),
                     variable.has_next() ? original(variable.next()).path() : "");
}

class Builder {
 public:
  void add(const std::string& part, const std::string& text) {
    auto& [count, texts] = parts_[part];
    ++count;
    texts += text + '\n';
  }
  GraphIdentity identity() const {
    GraphIdentity identity;
    std::string all;
    for (const auto& [name, part] : parts_) {
      identity.parts[name] = {part.first, hash_text(part.second)};
      all += fmt::format("{} {:016x}\n", name, identity.parts[name].hash);
    }
    identity.hash = hash_text(all);
    return identity;
  }

 private:
  std::map<std::string, std::pair<std::int64_t, std::string>> parts_;
};

std::string counted(const std::string& part, std::int64_t count) {
  const bool is_type = part != variables_part && part != inputs_part && part != watched_part;
  return fmt::format("{} {}{}", count, part, !is_type ? "" : count == 1 ? " operator" : " operators");
}

}  // namespace

GraphIdentity identify(Graph& graph) {
  Builder builder;
  for (const Tensor input : graph.inputs()) builder.add(inputs_part, input.path() + input.info().text());
  for (const Variable& variable : graph.variables()) builder.add(variables_part, text_of(variable));
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    if (op.type() != copy_type) builder.add(std::string(op.type()), text_of(op));
  }
  for (const Tensor tensor : graph.watched()) builder.add(watched_part, original(tensor).path());
  return builder.identity();
}

std::string difference(const GraphIdentity& before, const GraphIdentity& now) {
  std::map<std::string, std::pair<GraphPart, GraphPart>> both;
  for (const auto& [name, part] : before.parts) both[name].first = part;
  for (const auto& [name, part] : now.parts) both[name].second = part;
  for (const auto& [name, parts] : both) {
    const auto& [then, here] = parts;
    if (then.count != here.count) {
      return fmt::format("it has {}, now there {} {}", counted(name, then.count),
                         here.count == 1 ? "is" : "are", here.count);
    }
    if (then.hash != here.hash)
      return fmt::format("the names or settings of its {} differ", counted(name, then.count));
  }
  return "it says nothing about itself";
}

}  // namespace purine::train
