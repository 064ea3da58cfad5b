#include "purine/parallel/partition.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "purine/core/error.h"
#include "purine/graph/transform.h"
#include "purine/ops/copy.h"
#include "purine/parallel/buckets.h"
#include "purine/parallel/operator_piece.h"
#include "purine/parallel/partitioned_data.h"
#include "purine/parallel/plan.h"
#include "purine/parallel/reshard.h"
#include "purine/parallel/synchronized.h"

namespace purine::parallel {
namespace {

constexpr std::uint32_t none = no_piece;

class Partitioner {
 public:
  Partitioner(Graph& from, Graph& to, const Specs& specs, const PartitionOptions& options)
      : from_(from),
        to_(to),
        mesh_(specs.mesh()),
        plan_(make_plan(from, specs, options.synchronize_batch_normalization)),
        reductions_(reductions_of(options)),
        resharder_(to, mesh_, reductions_),
        buckets_(from, plan_, options.bucket_bytes),
        versions_(from.tensor_count()) {
    for (int i = 0; i < mesh_.size(); ++i) {
      roots_of_locations_.push_back(to.scope_number({}, "@" + std::to_string(i)));
    }
  }

  void run() {
    for (const Variable variable : from_.variables()) add_variable(variable);
    for (const Tensor input : from_.inputs()) add_input(input);
    for (std::uint32_t i = 0; i < from_.operator_count(); ++i) {
      try {
        add_operator(from_.op(i));
      } catch (const Error& error) {
        throw error.at(from_.op(i).path());
      }
    }
    for (const Variable variable : from_.variables()) set_next(variable);
    for (const Tensor tensor : from_.watched()) {
      roots_.emplace_back(tensor.index(), root(tensor));
      to_.watch(roots_.back().second);
    }
  }

  Plan& plan() { return plan_; }
  std::vector<std::vector<Version>>& versions() { return versions_; }
  std::vector<std::pair<std::uint32_t, Tensor>>& roots() { return roots_; }

 private:
  Location location(int index) const { return mesh_.locations()[static_cast<std::size_t>(index)]; }

  std::vector<std::uint32_t> numbers(const Pieces& pieces) const {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(pieces.size());
    for (const Tensor piece : pieces) numbers.push_back(piece.valid() ? piece.index() : none);
    return numbers;
  }

  Pieces pieces(const Version& version) {
    Pieces pieces;
    pieces.reserve(version.pieces.size());
    for (const std::uint32_t number : version.pieces) {
      pieces.push_back(number == none ? Tensor() : to_.tensor(number));
    }
    return pieces;
  }

  /// A tensor lying as said, brought there if it doesn't yet.
  const Version& version(Tensor tensor, const Spec& spec) {
    std::vector<Version>& known = versions_[tensor.index()];
    for (const Version& version : known) {
      if (same_spec(mesh_, version.spec, spec)) return version;
    }
    PURINE_CHECK(!known.empty());
    if (is_whole(spec) && convert_in_bucket(tensor)) return known.back();
    const Version& source = known.front();
    const bool of_gradient = tensor.has_producer() && is_gradient(tensor.producer());
    const Pieces made =
        resharder_.convert(pieces(source), tensor.info(), source.spec, spec, name_of(tensor), of_gradient);
    known.push_back({spec, numbers(made)});
    return known.back();
  }

  /// Brings a tensor, with all of its bucket that is there and isn't whole yet, to being whole everywhere.
  /// False if there are no others.
  bool convert_in_bucket(Tensor tensor) {
    const std::vector<std::uint32_t>& own = versions_[tensor.index()].front().pieces;
    const auto same_places = [](std::uint32_t a, std::uint32_t b) { return (a == none) == (b == none); };
    std::vector<std::uint32_t> members;
    std::vector<Pieces> parts;
    for (const std::uint32_t t : buckets_.with(tensor.index())) {
      const std::vector<Version>& known = versions_[t];
      if (known.empty() || std::any_of(known.begin(), known.end(),
                                       [](const Version& version) { return is_whole(version.spec); })) {
        continue;
      }
      const std::vector<std::uint32_t>& others = known.front().pieces;
      if (!std::equal(own.begin(), own.end(), others.begin(), others.end(), same_places)) continue;
      members.push_back(t);
      parts.push_back(pieces(known.front()));
    }
    if (members.size() < 2) return false;
    const std::string name =
        "bucket" + (reduced_buckets_ == 0 ? "" : "_" + std::to_string(reduced_buckets_ + 1));
    ++reduced_buckets_;
    const std::vector<Pieces> made =
        convert_bucket(to_, resharder_, parts, versions_[members.front()].front().spec, name,
                       is_gradient(tensor.producer()));
    for (std::size_t i = 0; i < members.size(); ++i) {
      versions_[members[i]].push_back({Spec(static_cast<std::size_t>(mesh_.axis_count())), numbers(made[i])});
    }
    return true;
  }

  void add_variable(Variable variable) {
    const Spec& spec = plan_.tensors[variable.index()];
    const std::vector<Division> divisions = initial_divisions(mesh_, variable, spec);
    const ContractPtr initial = variable.initial().shared_from_this();
    const VariableOptions options{variable.trainable(), variable.decays()};
    const std::string path = variable.path();
    const auto [scopes, name] = scopes_of(path);
    Version version{spec, {}};
    for (int i = 0; i < mesh_.size(); ++i) {
      const ContractPtr piece = operator_piece(mesh_, i, divisions, initial, {});
      if (piece == nullptr) {
        version.pieces.push_back(none);
        continue;
      }
      const auto place = to_.at(location(i));
      const bool plain = i == 0 && is_whole(spec);
      const auto scope = to_.reopen_scope(plain ? Graph::ScopeNumber() : scopes[static_cast<std::size_t>(i)]);
      version.pieces.push_back(
          to_.variable(plain ? path : name, piece->infer({})[0], piece, options).index());
    }
    versions_[variable.index()].push_back(std::move(version));
  }

  void add_input(Tensor input) {
    const auto place = to_.at(host_of(location(0)));
    const Tensor whole = to_.input(input.path(), input.info());
    roots_.emplace_back(input.index(), whole);
    const Spec& spec = plan_.tensors[input.index()];
    versions_[input.index()].push_back({spec, numbers(resharder_.scatter(whole, spec, name_of(input)))});
  }

  void add_operator(Operator op) {
    if (op.contract().crosses_locations()) {
      throw Error("partition", "the graph lies at several locations already",
                  "divide a graph for one location");
    }
    const std::vector<Division>& divisions = plan_.operators[op.index()];
    const std::vector<const Version*> inputs = needed(op);
    std::vector<Pieces> results;
    if (is_synchronized(op, divisions)) {
      std::vector<Pieces> arguments;
      for (const Version* input : inputs) arguments.push_back(pieces(*input));
      results = add_synchronized(to_, mesh_, resharder_, op, divisions, arguments);
    } else {
      results = add_pieces(op, divisions, inputs);
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Tensor output = op.output(static_cast<int>(k));
      complete(results[k], divisions, static_cast<int>(k));
      std::vector<Version>& known = versions_[output.index()];
      known.push_back({plan_.results[output.index()], numbers(results[k])});
      if (same_spec(mesh_, plan_.results[output.index()], plan_.tensors[output.index()])) continue;
      version(output, plan_.tensors[output.index()]);
      std::swap(known.front(), known.back());
    }
  }

  /// The scopes, by location, of what has this path in the graph for one location, and its name there.
  std::pair<std::span<const Graph::ScopeNumber>, std::string> scopes_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return {roots_of_locations_, path};
    std::vector<Graph::ScopeNumber>& scopes = scopes_[path.substr(0, slash)];
    if (scopes.empty()) {
      for (const Graph::ScopeNumber root : roots_of_locations_) {
        scopes.push_back(to_.scope_number(root, path.substr(0, slash)));
      }
    }
    return {scopes, path.substr(slash + 1)};
  }

  /// The pieces of an operator, one at each location that has a share of it.
  std::vector<Pieces> add_pieces(Operator op, const std::vector<Division>& divisions,
                                 const std::vector<const Version*>& inputs) {
    std::vector<TensorInfo> infos;
    for (int i = 0; i < op.input_count(); ++i) infos.push_back(op.input(i).info());
    const std::string path = op.path();
    const auto [scopes, name] = scopes_of(path);
    const auto outputs = static_cast<std::size_t>(op.output_count());
    std::vector<Pieces> results(outputs, Pieces(static_cast<std::size_t>(mesh_.size())));
    std::vector<Tensor> arguments(inputs.size());
    for (int i = 0; i < mesh_.size(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const ContractPtr piece = operator_piece(mesh_, i, divisions, op.contract_pointer(), infos);
      if (piece == nullptr) continue;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        PURINE_CHECK(inputs[k]->pieces[index] != none);
        arguments[k] = to_.tensor(inputs[k]->pieces[index]);
      }
      const bool on_host = op.contract().brings_samples();
      const auto place = to_.at(on_host ? host_of(location(i)) : location(i));
      const auto scope = to_.reopen_scope(scopes[index]);
      const Operator made = to_.add(piece, arguments, name);
      for (std::size_t k = 0; k < outputs; ++k) {
        results[k][index] = ops::copy(made.output(static_cast<int>(k)), location(i));
      }
    }
    return results;
  }

  /// The inputs as the divisions need them. Adds what brings them there before it hands any out.
  std::vector<const Version*> needed(Operator op) {
    std::vector<Spec> specs;
    for (int i = 0; i < op.input_count(); ++i) {
      specs.push_back(needed_spec(plan_, op, i));
      version(op.input(i), specs.back());
    }
    std::vector<const Version*> versions;
    for (int i = 0; i < op.input_count(); ++i) {
      versions.push_back(&version(op.input(i), specs[static_cast<std::size_t>(i)]));
    }
    return versions;
  }

  void complete(Pieces& pieces, const std::vector<Division>& divisions, int output) const {
    for (int axis = 0; axis < mesh_.axis_count(); ++axis) {
      complete_pieces(mesh_, pieces, divisions[static_cast<std::size_t>(axis)], output, axis);
    }
  }

  void set_next(Variable variable) {
    if (!variable.has_next()) return;
    const Version& next = version(variable.next(), plan_.tensors[variable.index()]);
    const Version& current = versions_[variable.index()].front();
    for (std::size_t i = 0; i < current.pieces.size(); ++i) {
      if (current.pieces[i] == none) continue;
      to_.set_next(Variable(&to_, current.pieces[i]), to_.tensor(next.pieces[i]));
    }
  }

  /// The whole tensor at the first location.
  Tensor root(Tensor tensor) {
    for (const auto& [index, whole] : roots_) {
      if (index == tensor.index()) return whole;
    }
    for (const Version& version : versions_[tensor.index()]) {
      if (is_whole(version.spec)) return to_.tensor(version.pieces.front());
    }
    const Version& version = versions_[tensor.index()].front();
    return resharder_.gather(pieces(version), tensor.info(), version.spec, name_of(tensor));
  }

  Graph& from_;
  Graph& to_;
  const Mesh mesh_;
  Plan plan_;
  const Reductions reductions_;
  Resharder resharder_;
  const Buckets buckets_;
  int reduced_buckets_ = 0;
  std::vector<Graph::ScopeNumber> roots_of_locations_;                       // `@0`, `@1`, …
  std::unordered_map<std::string, std::vector<Graph::ScopeNumber>> scopes_;  // by scope's path, by location
  std::vector<std::vector<Version>> versions_;           // by tensor; the first is as Plan::tensors says
  std::vector<std::pair<std::uint32_t, Tensor>> roots_;  // inputs and watched tensors, whole
};

}  // namespace

bool is_whole(const Spec& spec) {
  return std::all_of(spec.begin(), spec.end(), [](const Placement& p) { return p.is_replicated(); });
}

std::string name_of(Tensor tensor) {
  std::string path = tensor.path();
  std::replace(path.begin(), path.end(), ':', '.');
  return path;
}

Location host_of(Location location) {
  if (location.kind == DeviceKind::cpu) return location;
  return {location.rank, DeviceKind::cpu, 0};
}

Reductions reductions_of(const PartitionOptions& options) {
  if (options.all_reduce && options.gradient_wire) {
    throw Error("partition", "an all-reduce is given, and how gradients are sent",
                "narrow_all_reduce makes an all-reduce that sends narrow numbers");
  }
  const AllReduce values = options.all_reduce ? options.all_reduce : all_reduce_by_cost(options.link);
  const AllReduce gradients =
      options.gradient_wire ? narrow_all_reduce_by_cost(options.link, *options.gradient_wire) : values;
  return {in_chunks(values, options.chunk_bytes), in_chunks(gradients, options.chunk_bytes),
          options.gradient_wire};
}

std::vector<Division> initial_divisions(const Mesh& mesh, Variable variable, const Spec& spec) {
  const std::vector<SplitRule> rules = variable.initial().split_rules({});
  std::vector<Division> divisions;
  for (const Placement& placement : spec) {
    divisions.emplace_back();
    if (!placement.is_split()) continue;
    const auto fits = [&](const SplitRule& rule) {
      return rule.outputs.front() == placement.dimension && rule.units % placement.units == 0;
    };
    const auto rule = std::find_if(rules.begin(), rules.end(), fits);
    if (rule == rules.end()) {
      throw Error("partition", "its initial value, " + std::string(variable.initial().type()) +
                                   ", can't be divided so: " + text(mesh, spec))
          .at(variable.path());
    }
    divisions.back() = {true, *rule, placement.units, placement.first};
  }
  return divisions;
}

void complete_pieces(const Mesh& mesh, std::vector<Tensor>& pieces, const Division& division, int output,
                     int axis) {
  if (!division.divided || !division.output(output).is_replicated()) return;
  for (int first = 0; first < mesh.size(); ++first) {
    if (mesh.coordinate(first, axis) != 0) continue;
    Tensor source;
    for (const int i : mesh.group(first, axis)) {
      if (!source.valid()) source = pieces[static_cast<std::size_t>(i)];
    }
    for (const int i : mesh.group(first, axis)) {
      Tensor& piece = pieces[static_cast<std::size_t>(i)];
      if (source.valid() && !piece.valid()) {
        piece = ops::copy(source, mesh.locations()[static_cast<std::size_t>(i)]);
      }
    }
  }
}

/// The number of samples of an iteration, if the graph has samples.
std::optional<std::int64_t> samples_of(Graph& graph) {
  try {
    return batch_size(graph);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_is_whole(Graph& graph) {
  for (const Variable variable : graph.variables()) {
    if (variable.path().starts_with('@')) {
      throw Error("partition", "is a piece of a graph that is divided already").at(variable.path());
    }
  }
  for (std::uint32_t i = 0; i < graph.tensor_count(); ++i) {
    const Tensor tensor = graph.tensor(i);
    if (tensor.location() == graph.tensor(0).location()) continue;
    throw Error("partition",
                "is at " + tensor.location().text() + ", " + graph.tensor(0).path() + " at " +
                    graph.tensor(0).location().text(),
                "divide a graph for one location")
        .at(tensor.path());
  }
}

Partitioned::Partitioned(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Partitioned::Partitioned(Partitioned&&) noexcept = default;
Partitioned& Partitioned::operator=(Partitioned&&) noexcept = default;
Partitioned::~Partitioned() = default;

Graph& Partitioned::graph() {
  return data_->graph;
}

const Mesh& Partitioned::mesh() const {
  return data_->mesh;
}

Tensor Partitioned::at(Tensor tensor) const {
  if (tensor.valid() && &tensor.graph() == &data_->graph) return tensor;
  const Spec& lies = spec(tensor);
  for (const auto& [index, whole] : data_->roots) {
    if (index == tensor.index()) return whole;
  }
  for (const Version& version : data_->versions[tensor.index()]) {
    if (is_whole(version.spec)) return data_->graph.tensor(version.pieces.front());
  }
  throw Error("partition", "is whole nowhere: " + text(data_->divided, lies),
              "watch it before the graph is divided, or look at its pieces")
      .at(tensor.path());
}

const Spec& Partitioned::spec(Tensor tensor) const {
  if (!tensor.valid() || &tensor.graph() != data_->from) {
    throw Error("partition", "the tensor is none of the graph that was divided");
  }
  return data_->plan.tensors[tensor.index()];
}

std::vector<Partitioned::Piece> Partitioned::pieces(Tensor tensor) const {
  const Spec& lies = spec(tensor);
  std::vector<Piece> pieces;
  if (data_->versions[tensor.index()].empty()) return pieces;
  const Version& version = data_->versions[tensor.index()].front();
  const std::vector<Location>& locations = data_->mesh.locations();
  for (int i = 0; i < data_->divided.size(); ++i) {
    const std::uint32_t number = version.pieces[static_cast<std::size_t>(i)];
    if (number == no_piece) continue;
    const Tensor piece = data_->graph.tensor(number);
    // Micro-batches share what isn't divided by them.
    const auto same = [&](const Piece& other) { return other.tensor == piece; };
    if (std::any_of(pieces.begin(), pieces.end(), same)) continue;
    const auto location =
        static_cast<int>(std::find(locations.begin(), locations.end(), piece.location()) - locations.begin());
    pieces.push_back({piece, location, element_ranges(data_->divided, tensor.shape(), lies, i)});
  }
  return pieces;
}

Partitioned partition(Graph& graph, const Specs& specs, const PartitionOptions& options) {
  check_is_whole(graph);
  auto data = std::make_unique<Partitioned::Data>(specs.mesh(), specs.mesh());
  data->from = &graph;
  Partitioner partitioner(graph, data->graph, specs, options);
  partitioner.run();
  data->plan = std::move(partitioner.plan());
  data->versions = std::move(partitioner.versions());
  data->roots = std::move(partitioner.roots());
  if (const auto samples = samples_of(graph)) {
    Specs fixed = specs;
    for (const Variable variable : graph.variables())
      fixed.set_all(variable, data->plan.tensors[variable.index()]);
    data->graph.set_batch_recipe({*samples, [&graph, fixed, options](std::int64_t count, Graph& out) {
                                    Graph resized;
                                    with_batch_size(graph, count, resized);
                                    Partitioner(resized, out, fixed, options).run();
                                  }});
  }
  return Partitioned(std::move(data));
}

}  // namespace purine::parallel
