#include "purine/parallel/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "purine/core/error.h"
#include "purine/parallel/partitioned_data.h"

namespace purine::parallel {
namespace {

/// Gives every operator a position: the operators of the forward phase are at 0, 1, …; a gradient is at the
/// position of the operator whose gradient it is, as far as that can be told, and never before what it leads
/// to or after what leads to it.
class Positions {
 public:
  explicit Positions(Graph& graph)
      : graph_(graph),
        phases_(graph.operator_count()),
        operators_(graph.operator_count(), none),
        variables_(graph.tensor_count(), none),
        reached_(graph.tensor_count()) {
    find_phases();
    find_forward();
    find_variables();
    find_reached();
    find_gradients();
  }

  int count() const { return count_; }
  Phase phase(std::uint32_t op) const { return phases_[op]; }
  int of_operator(std::uint32_t op) const { return operators_[op]; }
  /// Of a variable's tensor.
  int of_variable(std::uint32_t tensor) const { return variables_[tensor]; }

 private:
  static constexpr int none = -1;
  /// The positions of the variables whose next values depend on a tensor, along gradients.
  struct Reached {
    int first = none;
    int last = none;

    void add(const Reached& other) {
      if (other.first == none) return;
      first = first == none ? other.first : std::min(first, other.first);
      last = std::max(last, other.last);
    }
  };

  bool depends_on_gradient(Operator op) const {
    for (int i = 0; i < op.input_count(); ++i) {
      if (op.input(i).has_producer() && phases_[op.input(i).producer().index()] != Phase::forward)
        return true;
    }
    return false;
  }

  void find_phases() {
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      const Operator op = graph_.op(i);
      phases_[i] = is_gradient(op)           ? Phase::backward
                   : depends_on_gradient(op) ? Phase::update
                                             : Phase::forward;
    }
  }

  void find_forward() {
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      if (phases_[i] == Phase::forward) operators_[i] = count_++;
    }
  }

  void find_variables() {
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      if (phases_[i] != Phase::forward) continue;
      for (const Tensor input : graph_.op(i).inputs()) {
        int& position = variables_[input.index()];
        if (graph_.is_variable(input) && position == none) position = operators_[i];
      }
    }
    // An optimiser's state is where the variable is that the same operator updates.
    const std::vector<Variable> variables = graph_.variables();
    for (const Variable variable : variables) {
      const int position = variables_[variable.index()];
      if (position == none || !variable.has_next() || !variable.next().has_producer()) continue;
      for (const Tensor input : variable.next().producer().inputs()) {
        if (graph_.is_variable(input) && variables_[input.index()] == none)
          variables_[input.index()] = position;
      }
    }
    for (const Variable variable : variables) {
      if (variables_[variable.index()] == none) variables_[variable.index()] = 0;
    }
  }

  /// From the next values back. An update is followed only through tensors of the variable's shape, so that
  /// what all updates have in common, a learning rate or the norm of all gradients, doesn't tie them
  /// together.
  void find_reached() {
    for (const Variable variable : graph_.variables()) {
      if (!variable.trainable() || !variable.has_next()) continue;
      const int position = variables_[variable.index()];
      reached_[variable.next().index()].add({position, position});
    }
    for (std::uint32_t i = graph_.operator_count(); i-- > 0;) {
      if (phases_[i] == Phase::forward) continue;
      const Operator op = graph_.op(i);
      for (const Tensor output : op.outputs()) {
        const Reached& reached = reached_[output.index()];
        if (reached.first == none) continue;
        for (const Tensor input : op.inputs()) {
          if (phases_[i] == Phase::update && !(input.shape() == output.shape())) continue;
          reached_[input.index()].add(reached);
        }
      }
    }
  }

  void find_gradients() {
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      if (phases_[i] == Phase::forward) continue;
      const Operator op = graph_.op(i);
      Reached reached;
      for (const Tensor output : op.outputs()) reached.add(reached_[output.index()]);
      int read = none;             // the last position of what it reads of the forward phase
      int gradients = count_ - 1;  // the first position of the gradients that it reads
      int all = none;
      for (const Tensor input : op.inputs()) {
        if (graph_.is_variable(input)) {
          read = std::max(read, variables_[input.index()]);
        } else if (input.has_producer()) {
          const std::uint32_t producer = input.producer().index();
          if (phases_[producer] == Phase::forward) {
            read = std::max(read, operators_[producer]);
          } else {
            gradients = std::min(gradients, operators_[producer]);
          }
          all = std::max(all, operators_[producer]);
        }
      }
      if (phases_[i] == Phase::update) {
        operators_[i] = reached.first != none ? reached.last : std::max({read, all, 0});
        continue;
      }
      if (read == none) read = gradients;
      operators_[i] = std::min(std::max({read, reached.last, 0}), gradients);
      if (reached.first == none) {
        phases_[i] = Phase::update;
      } else if (reached.first == operators_[i] && reached.last == operators_[i]) {
        phases_[i] = Phase::weight_gradient;
      }
    }
  }

  Graph& graph_;
  std::vector<Phase> phases_;     // by operator
  std::vector<int> operators_;    // the position, by operator
  std::vector<int> variables_;    // the position, by tensor
  std::vector<Reached> reached_;  // by tensor
  int count_ = 0;
};

/// Costs of runs of items: of the items before each, and of the sums of squares of the best cuts.
class Cuts {
 public:
  Cuts(std::span<const double> costs, int stages, std::span<const double> shares)
      : items_(static_cast<int>(costs.size())),
        stages_(stages),
        shares_(shares.begin(), shares.end()),
        before_(costs.size() + 1, 0) {
    shares_.resize(static_cast<std::size_t>(stages), 1);
    for (std::size_t i = 0; i < costs.size(); ++i) before_[i + 1] = before_[i] + costs[i];
    // Sums that differ by rounding alone are equal.
    tolerance_ = before_.back() * 1e-9;
  }

  std::vector<int> best() {
    find_limit();
    find_squares();
    std::vector<int> sizes;
    int begin = 0;
    for (int stages = stages_; stages > 0; --stages) {
      const double least = squares(begin, stages);
      int end = items_ - (stages - 1);  // the longest first run
      while (end > begin + 1 && !is_best(begin, end, stages, least)) --end;
      PURINE_CHECK(is_best(begin, end, stages, least));
      sizes.push_back(end - begin);
      begin = end;
    }
    return sizes;
  }

 private:
  static constexpr double impossible = std::numeric_limits<double>::infinity();

  /// Of the first of the last `stages` runs, by its share.
  double run(int begin, int end, int stages) const {
    return (before_[static_cast<std::size_t>(end)] - before_[static_cast<std::size_t>(begin)]) /
           shares_[static_cast<std::size_t>(stages_ - stages)];
  }
  double& squares(int begin, int stages) {
    return squares_[static_cast<std::size_t>(stages) * static_cast<std::size_t>(items_ + 1) +
                    static_cast<std::size_t>(begin)];
  }
  double with_first(int begin, int end, int stages) {
    const double cost = run(begin, end, stages);
    return cost > limit_ + tolerance_ ? impossible : cost * cost + squares(end, stages - 1);
  }
  bool is_best(int begin, int end, int stages, double least) {
    return with_first(begin, end, stages) <= least + tolerance_ * (before_.back() + 1e-300);
  }

  /// The least that the costliest run can cost, by the number of the items that are cut.
  void find_limit() {
    std::vector<double> least(static_cast<std::size_t>(items_) + 1, impossible);
    least.back() = 0;
    for (int stages = 1; stages <= stages_; ++stages) {
      std::vector<double> next(least.size(), impossible);
      for (int begin = 0; begin < items_; ++begin) {
        double& best = next[static_cast<std::size_t>(begin)];
        for (int end = begin + 1; end <= items_; ++end) {
          best = std::min(best, std::max(run(begin, end, stages), least[static_cast<std::size_t>(end)]));
        }
      }
      least = std::move(next);
    }
    limit_ = least.front();
  }

  void find_squares() {
    squares_.assign(static_cast<std::size_t>(stages_ + 1) * static_cast<std::size_t>(items_ + 1), impossible);
    squares(items_, 0) = 0;
    for (int stages = 1; stages <= stages_; ++stages) {
      for (int begin = 0; begin < items_; ++begin) {
        double least = impossible;
        for (int end = begin + 1; end <= items_; ++end)
          least = std::min(least, with_first(begin, end, stages));
        squares(begin, stages) = least;
      }
    }
  }

  int items_;
  int stages_;
  std::vector<double> shares_;
  std::vector<double> before_;
  double tolerance_ = 0;
  double limit_ = 0;
  std::vector<double> squares_;  // by stages, by first item: the least of the items from there on
};

}  // namespace

std::vector<int> divide_into_stages(std::span<const double> costs, int stages,
                                    std::span<const double> shares) {
  if (stages < 1)
    throw Error("pipeline", fmt::format("{} stages were asked for, at least 1 is needed", stages));
  if (costs.size() < static_cast<std::size_t>(stages)) {
    throw Error("pipeline", fmt::format("{} operators can't be cut into {} stages", costs.size(), stages),
                "take fewer stages, or divide the samples along a second axis: data=2,stage=4");
  }
  for (const double cost : costs) {
    if (!std::isfinite(cost) || cost < 0) {
      throw Error("pipeline", fmt::format("an operator's cost is {}, a number from 0 on is needed", cost));
    }
  }
  const auto is_share = [](double share) { return std::isfinite(share) && share > 0; };
  if (!shares.empty() && (shares.size() != static_cast<std::size_t>(stages) ||
                          !std::all_of(shares.begin(), shares.end(), is_share))) {
    throw Error("pipeline", fmt::format("{} stages need as many positive shares of the work, got [{}]",
                                        stages, fmt::join(shares, ", ")));
  }
  return Cuts(costs, stages, shares).best();
}

double estimated_cost(Operator op) {
  constexpr double operations_per_second = 50e9;
  constexpr double bytes_per_second = 8e9;
  if (op.contract().brings_samples()) return 0;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  for (const Tensor input : op.inputs()) inputs.push_back(input.info());
  for (const Tensor output : op.outputs()) outputs.push_back(output.info());
  const Cost cost = op.contract().cost(inputs, outputs);
  return std::max(cost.operations / operations_per_second, cost.bytes / bytes_per_second);
}

Stages assign_stages(Graph& graph, int stages, const std::function<double(Operator)>& cost,
                     std::span<const double> shares) {
  const Positions positions(graph);
  std::vector<double> costs(static_cast<std::size_t>(positions.count()), 0);
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    costs[static_cast<std::size_t>(positions.of_operator(i))] +=
        cost ? cost(graph.op(i)) : estimated_cost(graph.op(i));
  }
  std::vector<int> stage_of;  // by position
  const std::vector<int> sizes = divide_into_stages(costs, stages, shares);
  for (int s = 0; s < stages; ++s) stage_of.insert(stage_of.end(), static_cast<std::size_t>(sizes[s]), s);

  Stages result{stages, {}, {}, std::vector<int>(graph.tensor_count(), -1)};
  std::vector<bool> has_backward(static_cast<std::size_t>(stages), false);
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const int stage = stage_of[static_cast<std::size_t>(positions.of_operator(i))];
    result.operators.push_back(stage);
    result.phases.push_back(positions.phase(i));
    if (result.phases.back() == Phase::backward) has_backward[static_cast<std::size_t>(stage)] = true;
  }
  // What a stage that has nothing else does when a gradient arrives.
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    if (result.phases[i] == Phase::weight_gradient &&
        !has_backward[static_cast<std::size_t>(result.operators[i])]) {
      result.phases[i] = Phase::backward;
    }
  }
  for (const Variable variable : graph.variables()) {
    result.variables[variable.index()] =
        stage_of[static_cast<std::size_t>(positions.of_variable(variable.index()))];
  }
  return result;
}

}  // namespace purine::parallel
