#include "purine/graph/graph.h"

#include <charconv>

#include "purine/core/error.h"

namespace purine {
namespace {

/// `relu_12` is base `relu` and number 12; `relu`, `relu_` and `relu_012` are bases with number 0. Numbers
/// below 2 are never made by us, so `conv_1` stays a base of its own.
std::pair<std::string_view, std::uint32_t> split_number(std::string_view name) {
  const auto underscore = name.rfind('_');
  if (underscore == std::string_view::npos || underscore == 0 || underscore + 1 == name.size())
    return {name, 0};
  std::uint32_t number = 0;
  const char* first = name.data() + underscore + 1;
  const char* last = name.data() + name.size();
  const auto [end, code] = std::from_chars(first, last, number);
  if (code != std::errc() || end != last || number < 2 || *first == '0') return {name, 0};
  return {name.substr(0, underscore), number};
}

void check_name(std::string_view name) {
  if (name.empty()) throw Error("graph", "a name is empty");
  for (const char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.';
    if (!good) {
      throw Error(
          "graph", "the name '" + std::string(name) + "' holds the character '" + std::string(1, c) + "'",
          "names are made of letters, digits, '_', '-' and '.'; a scope separates its parts with '/'");
    }
  }
}

}  // namespace

Graph::Graph() {
  scopes_.push_back({});
  current_location_ = intern_location(Location{});
}

Graph::~Graph() = default;

std::uint32_t Graph::intern_text(std::string_view text) {
  const auto [entry, inserted] =
      text_index_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (inserted) texts_.emplace_back(text);
  return entry->second;
}

std::uint32_t Graph::intern_info(const TensorInfo& info) {
  const auto [entry, inserted] =
      info_index_.try_emplace(info.text(), static_cast<std::uint32_t>(infos_.size()));
  if (inserted) infos_.push_back(info);
  return entry->second;
}

std::uint32_t Graph::intern_location(Location location) {
  const auto [entry, inserted] =
      location_index_.try_emplace(location, static_cast<std::uint32_t>(locations_.size()));
  if (inserted) locations_.push_back(location);
  return entry->second;
}

Graph::Name Graph::make_name(std::string_view name, std::string_view unique_kind) {
  check_name(name);
  const auto [base_text, wanted] = split_number(name);
  const std::uint32_t base = intern_text(base_text);
  // A number at or above the next free one is free: numbers are given in rising order.
  std::uint32_t& next = next_number_[std::uint64_t{current_scope_} << 32 | base];
  Name made{current_scope_, base, 0};
  if (wanted >= next) {
    made.number = wanted;
  } else {
    made.number = next < 2 ? 2 : next;
    if (!unique_kind.empty()) {
      made.number = wanted;
      throw Error("graph",
                  "a vertex named " + path_of(made) + " exists already; " + std::string(unique_kind) +
                      " need names of their own",
                  "build the block in a scope of its own: auto scope = graph.scope(\"block_2\")");
    }
  }
  next = made.number + 1;
  return made;
}

std::string Graph::scope_path(std::uint32_t scope) const {
  if (scope == 0) return {};
  return path_of(scopes_[scope].name);
}

std::string Graph::path_of(const Name& name) const {
  std::string path = scope_path(name.scope);
  if (!path.empty()) path += '/';
  path += texts_[name.base];
  if (name.number > 0) path += "_" + std::to_string(name.number);
  return path;
}

void Graph::check_owned(Tensor tensor, std::string_view what) const {
  if (!tensor.valid()) throw Error(what, "a tensor handle is empty", "use a tensor that the graph returned");
  if (&tensor.graph() != this) {
    throw Error(what, "tensor " + tensor.path() + " belongs to another graph");
  }
}

Tensor Graph::input(std::string_view name, TensorInfo info) {
  const Name made = make_name(name, "inputs");
  const auto index = static_cast<std::uint32_t>(tensors_.size());
  tensors_.push_back(
      {none, intern_info(info), static_cast<std::uint32_t>(inputs_.size()), current_location_});
  inputs_.push_back({index, made});
  input_by_path_.emplace(path_of(made), index);
  return {this, index};
}

Variable Graph::variable(std::string_view name, TensorInfo info, ContractPtr initial,
                         VariableOptions options) {
  PURINE_CHECK(initial != nullptr);
  const Name made = make_name(name, "variables");
  const std::vector<TensorInfo> inferred = initial->infer({});
  if (inferred.size() != 1 || !(inferred[0] == info)) {
    throw Error("variable", "the initial value from " + std::string(initial->type()) + " is " +
                                (inferred.empty() ? "nothing" : inferred[0].text()) + ", the variable is " +
                                info.text())
        .at(path_of(made));
  }
  const auto index = static_cast<std::uint32_t>(tensors_.size());
  const auto record = static_cast<std::uint32_t>(variables_.size());
  tensors_.push_back({none, intern_info(info), record, current_location_});
  variables_.push_back({index, none, made, std::move(initial), options});
  variable_by_path_.emplace(path_of(made), index);
  return {this, index};
}

void Graph::set_next(Variable variable, Tensor next) {
  check_owned(variable, "variable");
  check_owned(next, "variable");
  VariableRecord& record = variables_[tensors_[variable.index()].extra];
  if (record.next != none) {
    throw Error("variable",
                "has a next value already, " + Tensor(this, record.next).path() + "; " + next.path() +
                    " would be a second one",
                "one optimiser updates a variable once an iteration")
        .at(variable.path());
  }
  if (!(next.info() == variable.info())) {
    throw Error("variable", "is " + variable.info().text() + ", its next value " + next.path() + " is " +
                                next.info().text())
        .at(variable.path());
  }
  record.next = next.index();
}

Operator Graph::add(ContractPtr contract, std::initializer_list<Tensor> inputs, std::string_view name) {
  return add(std::move(contract), std::span<const Tensor>(inputs.begin(), inputs.size()), name);
}

Operator Graph::add(ContractPtr contract, std::span<const Tensor> inputs, std::string_view name) {
  PURINE_CHECK(contract != nullptr);
  const std::string_view type = contract->type();
  std::vector<TensorInfo> infos;
  infos.reserve(inputs.size());
  for (const Tensor tensor : inputs) {
    check_owned(tensor, type);
    infos.push_back(tensor.info());
  }
  std::vector<TensorInfo> outputs;
  try {
    outputs = contract->infer(infos);
  } catch (const Error& error) {
    std::string path = current_scope();
    if (!path.empty()) path += '/';
    path += name.empty() ? type : name;
    throw error.at(path);
  }
  OperatorRecord record;
  record.name = make_name(name.empty() ? type : name, {});
  record.location = current_location_;
  record.first_input = static_cast<std::uint32_t>(operator_inputs_.size());
  record.first_output = static_cast<std::uint32_t>(tensors_.size());
  PURINE_CHECK(inputs.size() < 0xffff && outputs.size() < 0xffff);
  record.input_count = static_cast<std::uint16_t>(inputs.size());
  record.output_count = static_cast<std::uint16_t>(outputs.size());
  record.contract = std::move(contract);
  const auto index = static_cast<std::uint32_t>(operators_.size());
  for (const Tensor tensor : inputs) operator_inputs_.push_back(tensor.index());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    tensors_.push_back({index, intern_info(outputs[i]), static_cast<std::uint32_t>(i), current_location_});
  }
  operators_.push_back(std::move(record));
  return {this, index};
}

void Graph::watch(Tensor tensor) {
  check_owned(tensor, "watch");
  for (const std::uint32_t watched : watched_) {
    if (watched == tensor.index()) return;
  }
  watched_.push_back(tensor.index());
}

Graph::Scope Graph::scope(std::string_view name) {
  const std::uint32_t outer = current_scope_;
  while (true) {
    const auto slash = name.find('/');
    const Name made = make_name(name.substr(0, slash), {});
    scopes_.push_back({current_scope_, made});
    current_scope_ = static_cast<std::uint32_t>(scopes_.size() - 1);
    if (slash == std::string_view::npos) break;
    name.remove_prefix(slash + 1);
  }
  return {*this, outer};
}

Graph::Scope::~Scope() {
  graph_.current_scope_ = outer_;
}

std::string Graph::current_scope() const {
  return scope_path(current_scope_);
}

Graph::Placement Graph::at(Location location) {
  const Location outer = locations_[current_location_];
  current_location_ = intern_location(location);
  return {*this, outer};
}

Graph::Placement::~Placement() {
  graph_.current_location_ = graph_.intern_location(outer_);
}

std::uint32_t Graph::tensor_count() const {
  return static_cast<std::uint32_t>(tensors_.size());
}

std::uint32_t Graph::operator_count() const {
  return static_cast<std::uint32_t>(operators_.size());
}

Tensor Graph::tensor(std::uint32_t index) {
  PURINE_CHECK(index < tensors_.size());
  return {this, index};
}

Operator Graph::op(std::uint32_t index) {
  PURINE_CHECK(index < operators_.size());
  return {this, index};
}

std::vector<Variable> Graph::variables() {
  std::vector<Variable> variables;
  for (const VariableRecord& record : variables_) variables.emplace_back(this, record.tensor);
  return variables;
}

std::vector<Tensor> Graph::inputs() {
  std::vector<Tensor> inputs;
  for (const InputRecord& record : inputs_) inputs.emplace_back(this, record.tensor);
  return inputs;
}

std::vector<Tensor> Graph::watched() {
  std::vector<Tensor> watched;
  for (const std::uint32_t index : watched_) watched.emplace_back(this, index);
  return watched;
}

Variable Graph::find_variable(std::string_view path) {
  const auto found = variable_by_path_.find(std::string(path));
  if (found == variable_by_path_.end()) return {};
  return {this, found->second};
}

bool Graph::is_variable(Tensor tensor) const {
  const TensorRecord& record = tensors_[tensor.index()];
  return record.producer == none && record.extra < variables_.size() &&
         variables_[record.extra].tensor == tensor.index();
}

Variable Graph::as_variable(Tensor tensor) {
  PURINE_CHECK(is_variable(tensor));
  return {this, tensor.index()};
}

}  // namespace purine
