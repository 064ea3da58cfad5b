#include "purine/graph/graph.h"

#include <charconv>
#include <functional>
#include <utility>

#include "purine/core/error.h"

namespace purine {
namespace {

/// `relu_12` is base `relu` and number 12; `relu`, `relu_` and `relu_012` are bases with number 0. Numbers
/// below 2 are never made by us, so `conv_1` stays a base of its own. A name has one reading.
std::pair<std::string_view, std::uint32_t> split_number(std::string_view name) {
  const auto underscore = name.rfind('_');
  if (underscore == std::string_view::npos || underscore == 0 || underscore + 1 == name.size()) {
    return {name, 0};
  }
  std::uint32_t number = 0;
  const char* first = name.data() + underscore + 1;
  const char* last = name.data() + name.size();
  const auto [end, code] = std::from_chars(first, last, number);
  if (code != std::errc() || end != last || number < 2 || *first == '0') return {name, 0};
  return {name.substr(0, underscore), number};
}

/// Numbers begin with 0, which is none written, then 2.
std::uint32_t number_after(std::uint32_t number) {
  return number == 0 ? 2 : number + 1;
}

void check_part(std::string_view part, std::string_view name) {
  if (part.empty()) {
    throw Error("graph",
                name.empty() ? "a name is empty" : "the name '" + std::string(name) + "' has an empty part");
  }
  for (const char c : part.substr(part.front() == '@' && part.size() > 1 ? 1 : 0)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.';
    if (!good) {
      throw Error("graph",
                  "the name '" + std::string(name) + "' holds the character '" + std::string(1, c) + "'",
                  "names are made of letters, digits, '_', '-' and '.'; '/' separates the scopes of a path");
    }
  }
}

/// Checks a name or path of names, all of it before anything is made.
void check_name(std::string_view name) {
  std::string_view rest = name;
  for (auto slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    check_part(rest.substr(0, slash), name);
    rest.remove_prefix(slash + 1);
  }
  check_part(rest, name);
}

/// Two numbers as one: a scope, and what is below it.
std::uint64_t pair_of(std::uint32_t scope, std::uint32_t below) {
  return std::uint64_t{scope} << 32U | below;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value;
  hash *= 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

}  // namespace

std::string_view logical_path(std::string_view path) {
  if (!path.starts_with('@')) return path;
  const auto slash = path.find('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::size_t Graph::NameHash::operator()(const Name& name) const {
  return mix(mix(0, pair_of(name.scope, name.base)), name.number);
}

std::size_t Graph::InfoHash::operator()(const TensorInfo& info) const {
  std::uint64_t hash =
      mix(static_cast<std::uint64_t>(info.dtype), static_cast<std::uint64_t>(info.shape.rank()));
  for (const std::int64_t extent : info.shape) hash = mix(hash, static_cast<std::uint64_t>(extent));
  return hash;
}

std::size_t Graph::LocationHash::operator()(Location location) const {
  const auto half = [](std::int32_t number) { return static_cast<std::uint32_t>(number); };
  return mix(
      mix(static_cast<std::uint64_t>(location.kind), pair_of(half(location.rank), half(location.index))), 0);
}

Graph::Graph() {
  scopes_.push_back({});
  current_location_ = intern_location(Location{});
}

Graph::~Graph() = default;

std::uint32_t Graph::intern_text(std::string_view text) {
  const auto found = text_index_.find(text);
  if (found != text_index_.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  text_index_.emplace(texts_.back(), index);
  return index;
}

std::uint32_t Graph::intern_info(const TensorInfo& info) {
  const auto [entry, inserted] = info_index_.try_emplace(info, static_cast<std::uint32_t>(infos_.size()));
  if (inserted) infos_.push_back(info);
  return entry->second;
}

std::uint32_t Graph::intern_location(Location location) {
  if (current_location_ < locations_.size() && locations_[current_location_] == location) {
    return current_location_;
  }
  const auto [entry, inserted] =
      location_index_.try_emplace(location, static_cast<std::uint32_t>(locations_.size()));
  if (inserted) locations_.push_back(location);
  return entry->second;
}

std::uint32_t Graph::part_of(const Name& name) {
  if (name.number == 0) return name.base;
  return intern_text(texts_[name.base] + "_" + std::to_string(name.number));
}

std::uint32_t Graph::enter_scope(std::uint32_t outer, std::string_view name) {
  const std::uint64_t key = pair_of(outer, intern_text(name));
  if (const std::uint32_t* found = scope_index_.find(key)) return *found;
  const auto [base_text, number] = split_number(name);
  const Name made{outer, intern_text(base_text), number};
  try_take(made);  // an operator may have the name already; it and the scope don't mind each other
  scopes_.push_back(made);
  const auto scope = static_cast<std::uint32_t>(scopes_.size() - 1);
  scope_index_[key] = scope;
  return scope;
}

std::uint32_t Graph::enter_scopes(std::uint32_t outer, std::string_view path) {
  for (auto slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    outer = enter_scope(outer, path.substr(0, slash));
    path.remove_prefix(slash + 1);
  }
  return enter_scope(outer, path);
}

Graph::Name Graph::make_name(std::string_view name, std::string_view unique_kind) {
  check_name(name);
  const auto slash = name.rfind('/');
  if (slash == std::string_view::npos) return take_name(current_scope_, name, unique_kind);
  return take_name(enter_scopes(current_scope_, name.substr(0, slash)), name.substr(slash + 1), unique_kind);
}

bool Graph::try_take(const Name& name) {
  std::uint32_t& next = next_number_[pair_of(name.scope, name.base)];
  if (name.number > next) return taken_out_of_order_.insert(name).second;
  if (name.number < next || taken_out_of_order_.contains(name)) return false;
  next = number_after(next);
  return true;
}

Graph::Name Graph::take_name(std::uint32_t scope, std::string_view name, std::string_view unique_kind) {
  const auto [base_text, number] = split_number(name);
  Name made{scope, intern_text(base_text), number};
  if (try_take(made)) return made;
  if (!unique_kind.empty()) {
    throw Error("graph",
                "a vertex named " + path_of(made) + " exists already; " + std::string(unique_kind) +
                    " need names of their own",
                "build the block in a scope of its own: auto scope = graph.scope(\"block_2\")");
  }
  std::uint32_t& next = next_number_[pair_of(scope, made.base)];
  for (made.number = next; taken_out_of_order_.erase(made) > 0; made.number = number_after(made.number)) {
  }
  next = number_after(made.number);
  return made;
}

std::string Graph::scope_path(std::uint32_t scope) const {
  if (scope == 0) return {};
  return path_of(scopes_[scope]);
}

std::string Graph::path_of(const Name& name) const {
  std::string path = scope_path(name.scope);
  if (!path.empty()) path += '/';
  path += texts_[name.base];
  if (name.number > 0) path += "_" + std::to_string(name.number);
  return path;
}

std::string Graph::path_below_scope(std::string_view name) const {
  std::string path = scope_path(current_scope_);
  if (!path.empty()) path += '/';
  return path += name;
}

void Graph::check_owned(Tensor tensor, std::string_view component) const {
  if (!tensor.valid()) {
    throw Error(component, "a tensor handle is empty", "use a tensor that the graph returned");
  }
  if (&tensor.graph() != this) {
    throw Error(component, "tensor " + tensor.path() + " belongs to another graph");
  }
}

Tensor Graph::input(std::string_view name, TensorInfo info) {
  const Name made = make_name(name, "inputs");
  const auto index = static_cast<std::uint32_t>(tensors_.size());
  tensors_.push_back(
      {none, intern_info(info), static_cast<std::uint32_t>(inputs_.size()), current_location_});
  inputs_.push_back({index, made});
  leaf_index_[pair_of(made.scope, part_of(made))] = index;
  return {this, index};
}

Variable Graph::variable(std::string_view name, TensorInfo info, ContractPtr initial,
                         VariableOptions options) {
  PURINE_CHECK(initial != nullptr);
  try {
    const std::vector<TensorInfo> inferred = initial->infer({});
    if (inferred.size() != 1 || !(inferred[0] == info)) {
      throw Error("variable", "the initial value from " + std::string(initial->type()) + " is " +
                                  (inferred.empty() ? "nothing" : inferred[0].text()) + ", the variable is " +
                                  info.text());
    }
  } catch (const Error& error) {
    throw error.at(path_below_scope(name));
  }
  const Name made = make_name(name, "variables");
  const auto index = static_cast<std::uint32_t>(tensors_.size());
  const auto record = static_cast<std::uint32_t>(variables_.size());
  tensors_.push_back({none, intern_info(info), record, current_location_});
  variables_.push_back({index, none, made, std::move(initial), options});
  leaf_index_[pair_of(made.scope, part_of(made))] = index;
  return {this, index};
}

void Graph::set_next(Variable variable, Tensor next) {
  check_owned(variable, "variable");
  check_owned(next, "variable");
  PURINE_CHECK(is_variable(variable));
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
  if (name.empty()) name = contract->type();
  std::vector<TensorInfo> outputs;
  try {
    std::vector<TensorInfo> infos;
    infos.reserve(inputs.size());
    for (const Tensor tensor : inputs) {
      check_owned(tensor, contract->type());
      infos.push_back(tensor.info());
    }
    outputs = contract->infer(infos);
  } catch (const Error& error) {
    throw error.at(path_below_scope(name));
  }
  PURINE_CHECK(inputs.size() < 0xffff && outputs.size() < 0xffff);
  const auto index = static_cast<std::uint32_t>(operators_.size());
  OperatorRecord record;
  record.name = make_name(name, {});
  record.location = current_location_;
  record.first_input = static_cast<std::uint32_t>(operator_inputs_.size());
  record.first_output = static_cast<std::uint32_t>(tensors_.size());
  record.input_count = static_cast<std::uint16_t>(inputs.size());
  record.output_count = static_cast<std::uint16_t>(outputs.size());
  record.contract = std::move(contract);
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
  const Name made = make_name(name, {});
  scopes_.push_back(made);
  const std::uint32_t outer = current_scope_;
  current_scope_ = static_cast<std::uint32_t>(scopes_.size() - 1);
  scope_index_[pair_of(made.scope, part_of(made))] = current_scope_;
  return {*this, outer};
}

Graph::Scope Graph::reopen_scope(std::string_view path) {
  const std::uint32_t outer = current_scope_;
  if (path.empty()) return {*this, outer};
  check_name(path);
  current_scope_ = enter_scopes(outer, path);
  return {*this, outer};
}

Graph::ScopeNumber Graph::scope_number(ScopeNumber outer, std::string_view path) {
  PURINE_CHECK(outer.value < scopes_.size());
  if (path.empty()) return outer;
  check_name(path);
  return {enter_scopes(outer.value, path)};
}

Graph::Scope Graph::reopen_scope(ScopeNumber scope) {
  PURINE_CHECK(scope.value < scopes_.size());
  const std::uint32_t outer = current_scope_;
  current_scope_ = scope.value;
  return {*this, outer};
}

Graph::Scope::~Scope() {
  graph_.current_scope_ = outer_;
}

std::string Graph::current_scope() const {
  return scope_path(current_scope_);
}

Graph::Placement Graph::at(Location location) {
  const std::uint32_t outer = current_location_;
  current_location_ = intern_location(location);
  return {*this, outer};
}

Graph::Placement::~Placement() {
  graph_.current_location_ = outer_;
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

Tensor Graph::find_leaf(std::string_view path) {
  std::uint32_t scope = 0;
  while (true) {
    const auto slash = path.find('/');
    const auto part = text_index_.find(path.substr(0, slash));
    if (part == text_index_.end()) return {};
    const NumberMap& index = slash == std::string_view::npos ? leaf_index_ : scope_index_;
    const std::uint32_t* found = index.find(pair_of(scope, part->second));
    if (found == nullptr) return {};
    if (slash == std::string_view::npos) return {this, *found};
    scope = *found;
    path.remove_prefix(slash + 1);
  }
}

Variable Graph::find_variable(std::string_view path) {
  const Tensor found = find_leaf(path);
  return found.valid() && is_variable(found) ? as_variable(found) : Variable();
}

Tensor Graph::find_input(std::string_view path) {
  const Tensor found = find_leaf(path);
  return found.valid() && !is_variable(found) ? found : Tensor();
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
