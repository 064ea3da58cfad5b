// The bipartite graph of tensors and operators: structure only, no memory, no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "purine/graph/contract.h"
#include "purine/graph/number_map.h"
#include "purine/graph/tensor.h"

namespace purine {

struct VariableOptions {
  bool trainable = true;  ///< an optimiser learns it
  bool decays = true;     ///< weight decay applies to it
};

/// What the user builds and every transformation maps to another. Building never executes anything. Operators
/// and tensors are numbered in the order in which they are made, which is a topological order within an
/// iteration, since inputs exist before their consumers.
///
/// Names are paths of scopes; a name that is taken gets a number (`relu`, `relu_2`). Variables and inputs
/// must have paths of their own: a second one of the same path is an error. A name may be a path itself,
/// below the current scope (`conv1/weight/momentum`): its scopes are entered as they are, and made where they
/// don't exist.
///
/// A part of a name may begin with '@': a graph that was divided over several locations has what lies at the
/// second one below `@1`, under the path that it had in the graph for one (`@1/lenet/conv1/weight`);
/// `logical_path` gives that path back.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  /// A tensor that the host supplies for each iteration.
  Tensor input(std::string_view name, TensorInfo info);
  /// A variable; `initial` has no inputs and one output of this info. Its random stream is its path.
  Variable variable(std::string_view name, TensorInfo info, ContractPtr initial,
                    VariableOptions options = {});
  /// Names the next value of a variable: same info, and set once.
  void set_next(Variable variable, Tensor next);
  /// Adds an operator. The name defaults to the contract's type.
  Operator add(ContractPtr contract, std::span<const Tensor> inputs, std::string_view name = {});
  Operator add(ContractPtr contract, std::initializer_list<Tensor> inputs, std::string_view name = {});
  /// Marks a tensor whose value the host reads in each iteration (a loss, an accuracy): `Step::value`.
  void watch(Tensor tensor);

  /// How a graph that was made from another one is made for another number of samples.
  struct BatchRecipe {
    std::int64_t samples = 0;  ///< of one iteration of this graph
    /// Makes it for another number, in `out`, which is empty. Inputs and variables keep their paths, and
    /// watched tensors their order.
    std::function<void(std::int64_t samples, Graph& out)> make = {};
  };
  /// What `batch_size` and `with_batch_size` (purine/graph/transform.h) then answer by.
  void set_batch_recipe(BatchRecipe recipe) { batch_recipe_ = std::move(recipe); }
  /// Without a function if none was set.
  const BatchRecipe& batch_recipe() const { return batch_recipe_; }

  /// While the returned object lives, names are made under `name`: `auto scope = g.scope("conv1");`.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    friend class Graph;
    Scope(Graph& graph, std::uint32_t outer) : graph_(graph), outer_(outer) {}
    Graph& graph_;
    std::uint32_t outer_;
  };
  /// A scope of this name under the current one; a scope that exists is made again with a number, so two
  /// blocks of one name never mix. A name may be a path, `encoder/block_1`: its outer scopes are entered as
  /// they are.
  [[nodiscard]] Scope scope(std::string_view name);
  /// The scope of a path below the current one as it is, made where it doesn't exist; an empty path is the
  /// current scope. Transformations that add vertices on behalf of others keep their places so: what belongs
  /// to `lenet/conv1` goes to `gradient/lenet/conv1`.
  [[nodiscard]] Scope reopen_scope(std::string_view path);
  /// A scope by its number, for those who enter the same ones many times. The root's is 0.
  struct ScopeNumber {
    std::uint32_t value = 0;
  };
  /// The scope of a path below another one as it is, made where it doesn't exist; an empty path is the other.
  ScopeNumber scope_number(ScopeNumber outer, std::string_view path);
  [[nodiscard]] Scope reopen_scope(ScopeNumber scope);
  /// The current scope's path; empty at the root.
  std::string current_scope() const;

  /// While the returned object lives, vertices are made at this location.
  class Placement {
   public:
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;
    ~Placement();

   private:
    friend class Graph;
    Placement(Graph& graph, std::uint32_t outer) : graph_(graph), outer_(outer) {}
    Graph& graph_;
    std::uint32_t outer_;
  };
  [[nodiscard]] Placement at(Location location);

  std::uint32_t tensor_count() const;
  std::uint32_t operator_count() const;
  Tensor tensor(std::uint32_t index);
  Operator op(std::uint32_t index);
  /// In the order in which they were made.
  std::vector<Variable> variables();
  std::vector<Tensor> inputs();
  std::vector<Tensor> watched();
  /// The variable of a path, or one that is not valid.
  Variable find_variable(std::string_view path);
  /// The input of a path, or a tensor that is not valid.
  Tensor find_input(std::string_view path);
  bool is_variable(Tensor tensor) const;
  /// The tensor as a variable; it must be one.
  Variable as_variable(Tensor tensor);

 private:
  friend class Tensor;
  friend class Variable;
  friend class Operator;
  friend struct GraphRecords;

  static constexpr std::uint32_t none = 0xffffffffU;
  struct Name {
    std::uint32_t scope = 0;
    std::uint32_t base = 0;    // interned
    std::uint32_t number = 0;  // 0: no suffix
    bool operator==(const Name& other) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const;
  };
  struct InfoHash {
    std::size_t operator()(const TensorInfo& info) const;
  };
  struct LocationHash {
    std::size_t operator()(Location location) const;
  };
  struct TensorRecord {
    std::uint32_t producer = none;  // operator, or none
    std::uint32_t info = 0;         // interned
    std::uint32_t extra = 0;        // output index; for variables and inputs the index of their record
    std::uint32_t location = 0;     // interned; the producer's for outputs
  };
  struct OperatorRecord {
    ContractPtr contract;
    Name name;
    std::uint32_t location = 0;
    std::uint32_t first_input = 0;   // into operator_inputs_
    std::uint32_t first_output = 0;  // outputs are consecutive tensors
    std::uint16_t input_count = 0;
    std::uint16_t output_count = 0;
  };
  struct VariableRecord {
    std::uint32_t tensor = 0;
    std::uint32_t next = none;
    Name name;
    ContractPtr initial;
    VariableOptions options;
  };
  struct InputRecord {
    std::uint32_t tensor = 0;
    Name name;
  };

  // Takes a name below the current scope: with a number if it is taken, or, if `unique_kind` says what needs
  // a name of its own, with an error.
  Name make_name(std::string_view name, std::string_view unique_kind);
  bool try_take(const Name& name);
  Name take_name(std::uint32_t scope, std::string_view name, std::string_view unique_kind);
  std::uint32_t enter_scope(std::uint32_t outer, std::string_view name);
  std::uint32_t enter_scopes(std::uint32_t outer, std::string_view path);
  // The text of a name below its scope, interned: with the scope it is the key of the indices below.
  std::uint32_t part_of(const Name& name);
  Tensor find_leaf(std::string_view path);
  std::string path_below_scope(std::string_view name) const;
  std::string path_of(const Name& name) const;
  std::string scope_path(std::uint32_t scope) const;
  std::uint32_t intern_text(std::string_view text);
  std::uint32_t intern_info(const TensorInfo& info);
  std::uint32_t intern_location(Location location);
  void check_owned(Tensor tensor, std::string_view component) const;

  std::vector<TensorRecord> tensors_;
  std::vector<OperatorRecord> operators_;
  std::vector<std::uint32_t> operator_inputs_;
  std::vector<VariableRecord> variables_;
  std::vector<InputRecord> inputs_;
  std::vector<std::uint32_t> watched_;
  NumberMap leaf_index_;  // variables and inputs, by scope and part

  std::vector<Name> scopes_;  // 0 is the root, which has no name
  NumberMap scope_index_;     // by scope and part
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> text_index_;  // views into texts_
  // Which numbers of a (scope, base) are taken: all below the next one, and those taken out of order.
  NumberMap next_number_;
  std::unordered_set<Name, NameHash> taken_out_of_order_;
  std::deque<TensorInfo> infos_;  // references to elements stay while others are added
  std::unordered_map<TensorInfo, std::uint32_t, InfoHash> info_index_;
  std::vector<Location> locations_;
  std::unordered_map<Location, std::uint32_t, LocationHash> location_index_;
  std::uint32_t current_scope_ = 0;
  std::uint32_t current_location_ = 0;
  BatchRecipe batch_recipe_;
};

/// The path that a vertex of a divided graph has in the graph for one location: without a leading `@1/`. It
/// names random streams, so that pieces and replicas draw what the whole would.
std::string_view logical_path(std::string_view path);

/// Consumers of every tensor, in operator order: made once by those who walk a graph forward.
class Consumers {
 public:
  explicit Consumers(Graph& graph);
  /// Operators that read a tensor, ascending; one that reads it twice is listed once.
  std::span<const std::uint32_t> of(std::uint32_t tensor) const {
    return {operators_.data() + offsets_[tensor], offsets_[tensor + 1] - offsets_[tensor]};
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> operators_;
};

/// Checks that the graph is bipartite with a single producer a tensor, acyclic within an iteration, and that
/// all shapes, dtypes, locations and next values fit. Throws Error with the path of the first vertex that
/// does not.
void verify(Graph& graph);
/// Stable text, a line a vertex, fit for golden files.
std::string dump(Graph& graph);
/// Graphviz's language: operators as boxes, tensors as ellipses, scopes as clusters, colours by location.
std::string dot(Graph& graph);
/// JSON for tools: {"tensors": […], "operators": […], "variables": […], "inputs": […], "watched": […]}.
std::string json(Graph& graph);

}  // namespace purine
