#include "purine/parallel/plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "purine/core/error.h"
#include "purine/parallel/synchronized.h"

namespace purine::parallel {
namespace {

using Kind = Placement::Kind;

std::vector<TensorInfo> input_infos(Operator op) {
  std::vector<TensorInfo> infos;
  for (int i = 0; i < op.input_count(); ++i) infos.push_back(op.input(i).info());
  return infos;
}

class Planner {
 public:
  Planner(Graph& graph, const Specs& specs, bool synchronize)
      : graph_(graph),
        synchronize_(synchronize),
        specs_(specs),
        mesh_(specs.mesh()),
        axes_(static_cast<std::size_t>(mesh_.axis_count())),
        consumers_(graph),
        rules_(graph.operator_count()),
        next_of_(graph.tensor_count(), none),
        present_(graph.tensor_count()) {}

  Plan run() {
    plan_.operators.resize(graph_.operator_count());
    plan_.results.resize(graph_.tensor_count());
    plan_.tensors.resize(graph_.tensor_count());
    place_leaves();
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) decide(graph_.op(i));
    return std::move(plan_);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;
  /// Smaller is better, the first member first.
  using Score = std::tuple<bool, double, int, double>;

  /// What is sent, and in how many conversions.
  struct Traffic {
    double bytes = 0;
    int steps = 0;
    bool operator<(const Traffic& other) const {
      return std::tie(bytes, steps) < std::tie(other.bytes, other.steps);
    }
  };

  void place_leaves() {
    for (const Tensor input : graph_.inputs()) place(input, declared(input).value_or(Spec(axes_)));
    for (const Variable variable : graph_.variables()) {
      if (variable.has_next()) next_of_[variable.next().index()] = variable.index();
      place(variable, declared(variable).value_or(like_others(variable)));
    }
  }

  /// An optimiser's state lies as the learnt variable that the same operator updates.
  Spec like_others(Variable variable) const {
    if (variable.trainable() || !variable.has_next() || !variable.next().has_producer()) return Spec(axes_);
    const Operator update = variable.next().producer();
    for (int i = 0; i < update.input_count(); ++i) {
      const Tensor other = update.input(i);
      if (other == variable || !graph_.is_variable(other) || !(other.shape() == variable.shape())) continue;
      const Variable updated = graph_.as_variable(other);
      if (!updated.trainable() || !updated.has_next() || !updated.next().has_producer()) continue;
      if (!(updated.next().producer() == update)) continue;
      if (const auto spec = declared(other)) return *spec;
    }
    return Spec(axes_);
  }

  std::optional<Spec> declared(Tensor tensor) const {
    const Spec* spec = specs_.find(tensor);
    if (spec == nullptr) return std::nullopt;
    Spec known = *spec;
    for (Placement& placement : known) {
      if (placement.is_split() && placement.units == 0) placement.units = tensor.shape()[placement.dimension];
    }
    return known;
  }

  void place(Tensor tensor, Spec spec) {
    plan_.results[tensor.index()] = spec;
    for (std::size_t axis = 0; axis < axes_; ++axis) present_[tensor.index()].emplace_back(axis, spec[axis]);
    plan_.tensors[tensor.index()] = std::move(spec);
  }

  void decide(Operator op) {
    std::vector<Division>& chosen = plan_.operators[op.index()];
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      std::optional<Score> best;
      Division best_division;
      for (Division& division : options(op, axis)) {
        if (!fits(op, division, chosen)) continue;
        const Score score = judge(op, axis, division);
        if (best && !(score < *best)) continue;
        best = score;
        best_division = std::move(division);
      }
      chosen.push_back(std::move(best_division));
    }
    for (int i = 0; i < op.input_count(); ++i) {
      for (std::size_t axis = 0; axis < axes_; ++axis) arrive(op.input(i), axis, chosen[axis].input(i));
    }
    for (int i = 0; i < op.output_count(); ++i) {
      Spec spec;
      for (const Division& division : chosen) spec.push_back(division.output(i));
      place(op.output(i), spec);
      if (auto wanted = declared(op.output(i))) {
        for (std::size_t axis = 0; axis < axes_; ++axis) arrive(op.output(i), axis, (*wanted)[axis]);
        plan_.tensors[op.output(i).index()] = std::move(*wanted);
      }
    }
  }

  /// Where an earlier axis splits the same dimension of a tensor, it must be by the same units: this one
  /// splits what that one leaves.
  static bool fits(Operator op, const Division& division, const std::vector<Division>& earlier) {
    const auto agree = [](const Placement& a, const Placement& b) {
      return !a.is_split() || !b.is_split() || a.dimension != b.dimension || a.units == b.units;
    };
    return std::all_of(earlier.begin(), earlier.end(), [&](const Division& other) {
      bool all = true;
      for (int i = 0; i < op.input_count(); ++i) all = all && agree(division.input(i), other.input(i));
      for (int i = 0; i < op.output_count(); ++i) all = all && agree(division.output(i), other.output(i));
      return all;
    });
  }

  /// Running it whole, and each rule with each way in which its units may lie: one by one, and as inputs and
  /// what is wanted of the outputs have them.
  std::vector<Division> options(Operator op, std::size_t axis) {
    std::vector<SplitRule>& rules = rules_[op.index()];
    if (!listed_.contains(op.index())) {
      listed_.insert(op.index());
      for (SplitRule& rule : op.contract().split_rules(input_infos(op))) {
        if (!rule.approximate || !synchronize_) {
          rules.push_back(std::move(rule));
        } else if (auto exact = synchronized_rule(op.contract(), rule)) {
          rules.push_back(std::move(*exact));
        }
      }
    }
    std::vector<Division> options(1);
    for (const SplitRule& rule : rules) {
      if (rule.units < 1) continue;
      const std::size_t begin = options.size();
      const auto add = [&](std::int64_t units, int first) {
        if (units < 1 || rule.units % units != 0) return;
        for (std::size_t i = begin; i < options.size(); ++i) {
          if (options[i].units == units && options[i].first == first) return;
        }
        options.push_back({true, rule, units, first});
      };
      const auto follow = [&](const Placement& placement, int dimension) {
        if (placement.is_split() && placement.dimension == dimension) add(placement.units, placement.first);
      };
      add(rule.units, 0);
      for (int i = 0; i < op.input_count(); ++i) {
        const int dimension = rule.inputs[static_cast<std::size_t>(i)];
        const Spec& spec = plan_.tensors[op.input(i).index()];
        if (dimension >= 0 && !spec.empty()) follow(spec[axis], dimension);
      }
      for (int i = 0; i < op.output_count(); ++i) {
        const int dimension = rule.outputs[static_cast<std::size_t>(i)];
        if (dimension < 0) continue;
        if (const auto wanted = declared(op.output(i))) follow((*wanted)[axis], dimension);
        if (const Placement* wanted = wanted_by_variable(op.output(i), axis)) follow(*wanted, dimension);
      }
    }
    return options;
  }

  const Placement* wanted_by_variable(Tensor tensor, std::size_t axis) const {
    const std::uint32_t variable = next_of_[tensor.index()];
    return variable == none ? nullptr : &plan_.tensors[variable][axis];
  }

  Score judge(Operator op, std::size_t axis, const Division& division) {
    Traffic now = inputs_of(op, axis, division, {}, {});
    Traffic later;
    for (int i = 0; i < op.output_count(); ++i) {
      const Tensor output = op.output(i);
      Placement placement = division.output(i);
      add_output(now, output, axis, placement);
      if (const auto wanted = declared(output)) placement = (*wanted)[axis];
      for (const std::uint32_t reader : consumers_.of(output.index())) {
        const Traffic read = of_reader(graph_.op(reader), axis, output, placement);
        later.bytes += read.bytes;
        later.steps += read.steps;
      }
    }
    return {now.bytes > 0, now.bytes + later.bytes, now.steps + later.steps, computing(op, axis, division)};
  }

  /// Adds what an output must be brought to at once, and to be a variable's next value.
  void add_output(Traffic& traffic, Tensor output, std::size_t axis, Placement placement) const {
    if (const auto wanted = declared(output)) {
      add_move(traffic, output, axis, placement, (*wanted)[axis]);
      placement = (*wanted)[axis];
    }
    if (const Placement* wanted = wanted_by_variable(output, axis)) {
      add_move(traffic, output, axis, placement, *wanted);
    }
  }

  /// The least with which a reader comes by, if `tensor` lies as said; inputs of which nothing is known yet
  /// cost nothing.
  Traffic of_reader(Operator reader, std::size_t axis, Tensor tensor, const Placement& placement) {
    std::optional<Traffic> least;
    for (const Division& division : options(reader, axis)) {
      Traffic traffic = inputs_of(reader, axis, division, tensor, placement);
      for (int i = 0; i < reader.output_count(); ++i) {
        add_output(traffic, reader.output(i), axis, division.output(i));
      }
      if (!least || traffic < *least) least = traffic;
    }
    return *least;
  }

  Traffic inputs_of(Operator op, std::size_t axis, const Division& division, Tensor known,
                    const Placement& known_placement) const {
    Traffic traffic;
    for (int i = 0; i < op.input_count(); ++i) {
      const Tensor input = op.input(i);
      const Placement needed = division.input(i);
      if (known.valid() && input == known) {
        add_move(traffic, input, axis, known_placement, needed);
      } else if (!plan_.tensors[input.index()].empty() && !is_present(input, axis, needed)) {
        add_move(traffic, input, axis, plan_.tensors[input.index()][axis], needed);
      }
    }
    return traffic;
  }

  void add_move(Traffic& traffic, Tensor tensor, std::size_t axis, const Placement& from,
                const Placement& to) const {
    const int index = static_cast<int>(axis);
    if (same_placement(mesh_, index, from, to)) return;
    if (from.is_replicated() && to.kind == Kind::varying) return;
    traffic.bytes +=
        reshard_bytes(from, to, static_cast<double>(tensor.info().bytes()), mesh_.axis_size(index));
    ++traffic.steps;
  }

  bool is_present(Tensor tensor, std::size_t axis, const Placement& placement) const {
    for (const auto& [at, present] : present_[tensor.index()]) {
      if (at == axis && same_placement(mesh_, static_cast<int>(axis), present, placement)) return true;
    }
    return false;
  }

  void arrive(Tensor tensor, std::size_t axis, const Placement& placement) {
    if (!is_present(tensor, axis, placement)) present_[tensor.index()].emplace_back(axis, placement);
  }

  /// Seconds, roughly, at the coordinate that has the most to do.
  double computing(Operator op, std::size_t axis, const Division& division) const {
    constexpr double operations_per_second = 50e9;
    constexpr double bytes_per_second = 8e9;
    std::vector<TensorInfo> outputs;
    for (const Tensor output : op.outputs()) outputs.push_back(output.info());
    const Cost cost = op.contract().cost(input_infos(op), outputs);
    double share = 1;
    if (division.divided) {
      const Range largest = mesh_.part(static_cast<int>(axis), division.units, 0);
      share = static_cast<double>(largest.size()) / static_cast<double>(division.units);
    }
    return share * std::max(cost.operations / operations_per_second, cost.bytes / bytes_per_second);
  }

  Graph& graph_;
  bool synchronize_;
  const Specs& specs_;
  const Mesh& mesh_;
  std::size_t axes_;
  Consumers consumers_;
  std::vector<std::vector<SplitRule>> rules_;  // by operator, once listed
  std::set<std::uint32_t> listed_;
  std::vector<std::uint32_t> next_of_;  // by tensor: the variable whose next value it is
  // By tensor: all placements in which it has been needed so far, with the axis.
  std::vector<std::vector<std::pair<std::size_t, Placement>>> present_;
  Plan plan_;
};

}  // namespace

Placement Division::input(int index) const {
  if (!divided) return replicated();
  const int dimension = rule.inputs[static_cast<std::size_t>(index)];
  if (dimension >= 0) return split(dimension, units, first);
  if (!rule.approximate) return replicated();
  return {Kind::varying, 0, units, first};
}

Placement Division::output(int index) const {
  if (!divided) return replicated();
  const int dimension = rule.outputs[static_cast<std::size_t>(index)];
  if (dimension >= 0) return split(dimension, units, first);
  if (dimension == SplitRule::partial) return partial();
  if (!rule.approximate) return replicated();
  return {Kind::varying, 0, units, first};
}

Spec needed_spec(const Plan& plan, Operator op, int input) {
  const std::vector<Division>& divisions = plan.operators[op.index()];
  Spec spec;
  for (std::size_t axis = 0; axis < divisions.size(); ++axis) {
    Placement placement = divisions[axis].input(input);
    const Placement& now = plan.tensors[op.input(input).index()][axis];
    if (placement.kind == Kind::varying && now.kind != Kind::varying) placement = replicated();
    spec.push_back(placement);
  }
  return spec;
}

double reshard_bytes(const Placement& from, const Placement& to, double bytes, int n) {
  const double others = static_cast<double>(n - 1) / n;
  // What is the same at every coordinate, or is made of what a coordinate has itself, costs nothing.
  if (from.kind == Kind::replicated || n == 1) return 0;
  const bool summed = from.kind == Kind::partial || from.kind == Kind::varying;
  if (to.is_split()) return summed ? others * bytes : others * bytes / n;
  return summed ? 2 * others * bytes : others * bytes;
}

bool same_placement(const Mesh& mesh, int axis, const Placement& a, const Placement& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Kind::replicated || a.kind == Kind::partial) return true;
  if (a.dimension != b.dimension || a.first != b.first) return false;
  if (a.units == b.units) return true;
  for (int i = 0; i < mesh.axis_size(axis); ++i) {
    const Range left = unit_range(mesh, axis, a, i);
    const Range right = unit_range(mesh, axis, b, i);
    if (left.begin * b.units != right.begin * a.units || left.end * b.units != right.end * a.units)
      return false;
  }
  return true;
}

bool same_on_axis(const Mesh& mesh, int axis, const Spec& a, const Spec& b) {
  const Placement& left = a[static_cast<std::size_t>(axis)];
  const Placement& right = b[static_cast<std::size_t>(axis)];
  if (!same_placement(mesh, axis, left, right)) return false;
  if (!left.is_split() || left.units == right.units) return true;
  // Equal by elements; where another axis splits the dimension too, units tell what that one can divide.
  const auto splits = [&](const Placement& p) { return p.is_split() && p.dimension == left.dimension; };
  return std::count_if(a.begin(), a.end(), splits) < 2 && std::count_if(b.begin(), b.end(), splits) < 2;
}

bool same_spec(const Mesh& mesh, const Spec& a, const Spec& b) {
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    if (!same_on_axis(mesh, axis, a, b)) return false;
  }
  return true;
}

Plan make_plan(Graph& graph, const Specs& specs, bool synchronize_batch_normalization) {
  return Planner(graph, specs, synchronize_batch_normalization).run();
}

}  // namespace purine::parallel
