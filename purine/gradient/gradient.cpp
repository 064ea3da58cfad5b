#include "purine/gradient/gradient.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/ops/constant.h"
#include "purine/ops/sum_n.h"

namespace purine {
namespace {

/// One call of `gradients`. Tensors and operators that it adds have higher numbers than those it walks over.
class GradientBuilder {
 public:
  GradientBuilder(Tensor loss, std::span<const Tensor> with_respect_to)
      : graph_(loss.graph()),
        loss_(loss),
        with_respect_to_(with_respect_to),
        on_path_(graph_.tensor_count(), false),
        contributions_(graph_.tensor_count()) {}

  std::vector<Tensor> build() {
    find_paths();
    std::vector<Tensor> gradients(with_respect_to_.size());
    if (!on_path_[loss_.index()]) return gradients;
    add_operators();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::vector<Tensor>& found = contributions_[with_respect_to_[i].index()];
      if (!found.empty()) gradients[i] = found.front();
    }
    return gradients;
  }

 private:
  /// Marks the tensors that depend on a given one and that the loss depends on, through floating tensors
  /// alone, and lists the operators that lead from one to another. Operators are numbered in topological
  /// order, so one walk up and one down suffice.
  void find_paths() {
    std::vector<bool> depends(graph_.tensor_count(), false);
    for (const Tensor tensor : with_respect_to_) depends[tensor.index()] = true;
    std::vector<std::uint32_t> dependent;
    const std::uint32_t end = loss_.has_producer() ? loss_.producer().index() + 1 : 0;
    for (std::uint32_t index = 0; index < end; ++index) {
      const Operator op = graph_.op(index);
      bool any = false;
      for (int i = 0; i < op.input_count() && !any; ++i) any = depends[op.input(i).index()];
      if (!any) continue;
      bool floating = false;
      for (int i = 0; i < op.output_count(); ++i) {
        const Tensor output = op.output(i);
        if (!is_floating(output.dtype())) continue;
        depends[output.index()] = true;
        floating = true;
      }
      if (floating) dependent.push_back(index);
    }
    on_path_[loss_.index()] = depends[loss_.index()];
    for (auto index = dependent.rbegin(); index != dependent.rend(); ++index) {
      const Operator op = graph_.op(*index);
      bool leads = false;
      for (int i = 0; i < op.output_count() && !leads; ++i) leads = on_path_[op.output(i).index()];
      if (!leads) continue;
      operators_.push_back(op);
      for (int i = 0; i < op.input_count(); ++i) {
        const std::uint32_t input = op.input(i).index();
        if (depends[input]) on_path_[input] = true;
      }
    }
  }

  void add_operators() {
    const auto outer = graph_.scope("gradient");
    {
      const auto scope = reopen_scope_of(loss_.path());
      const auto place = graph_.at(loss_.location());
      contributions_[loss_.index()] = {ops::constant(graph_, loss_.info(), 1, "seed")};
    }
    // The last operator first: when an operator is met, all readers of its outputs have been.
    for (const Operator op : operators_) {
      const auto scope = reopen_scope_of(op.path());
      const auto place = graph_.at(op.location());
      differentiate(op);
    }
    for (const Tensor tensor : with_respect_to_) {
      const auto scope = reopen_scope_of(tensor.path());
      const auto place = graph_.at(tensor.location());
      accumulate(tensor);
    }
  }

  /// Below the current scope, the one that a vertex of this path lies in.
  Graph::Scope reopen_scope_of(std::string_view path) {
    const auto slash = path.rfind('/');
    return graph_.reopen_scope(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
  }

  /// Makes one tensor of the contributions to a tensor's gradient.
  Tensor accumulate(Tensor tensor) {
    std::vector<Tensor>& found = contributions_[tensor.index()];
    if (found.empty()) return {};
    if (found.size() > 1) found = {ops::sum_n(found)};
    return found.front();
  }

  void differentiate(Operator op) {
    std::vector<Tensor> output_gradients;
    bool flows = false;
    for (int i = 0; i < op.output_count(); ++i) {
      output_gradients.push_back(accumulate(op.output(i)));
      flows = flows || output_gradients.back().valid();
    }
    if (!flows) return;
    std::vector<bool> needed;
    for (int i = 0; i < op.input_count(); ++i) needed.push_back(on_path_[op.input(i).index()]);
    const std::vector<Tensor> made = op.contract().gradient({op, output_gradients, needed});
    if (made.empty()) {
      throw Error(op.type(),
                  "has no gradient, and the loss " + loss_.path() + " depends on a parameter through it",
                  "take the loss of a tensor before it")
          .at(op.path());
    }
    PURINE_CHECK_EQUAL(static_cast<int>(made.size()), op.input_count());
    for (int i = 0; i < op.input_count(); ++i) {
      const Tensor gradient = made[static_cast<std::size_t>(i)];
      if (!gradient.valid() || !needed[static_cast<std::size_t>(i)]) continue;
      PURINE_CHECK_EQUAL(gradient.info().text(), op.input(i).info().text());
      contributions_[op.input(i).index()].push_back(gradient);
    }
  }

  Graph& graph_;
  Tensor loss_;
  std::span<const Tensor> with_respect_to_;
  std::vector<bool> on_path_;                       // by tensor
  std::vector<Operator> operators_;                 // those on a path, the last first
  std::vector<std::vector<Tensor>> contributions_;  // by tensor
};

/// True for a scope that purine/gradient makes: `gradient`, or `gradient_2` for a second loss.
bool is_gradient_scope(std::string_view name) {
  constexpr std::string_view gradient = "gradient";
  if (!name.starts_with(gradient)) return false;
  name.remove_prefix(gradient.size());
  return name.empty() || (name.size() > 1 && name[0] == '_' &&
                          name.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

}  // namespace

std::vector<Tensor> gradients(Tensor loss, std::span<const Tensor> with_respect_to) {
  if (!loss.valid()) throw Error("gradient", "the loss is an empty tensor handle");
  if (!is_floating(loss.dtype()) || loss.shape().rank() != 0) {
    throw Error("gradient", "the loss is " + loss.info().text() + ", a floating scalar is needed",
                "ops::sum and ops::mean make one")
        .at(loss.path());
  }
  for (const Tensor tensor : with_respect_to) {
    if (!tensor.valid()) throw Error("gradient", "a tensor to differentiate by is an empty handle");
    if (&tensor.graph() != &loss.graph()) {
      throw Error("gradient", "belongs to another graph than the loss " + loss.path()).at(tensor.path());
    }
    if (!is_floating(tensor.dtype())) {
      throw Error("gradient", "is " + tensor.info().text() + ", only floating tensors have gradients")
          .at(tensor.path());
    }
  }
  return GradientBuilder(loss, with_respect_to).build();
}

std::vector<Tensor> gradients(Tensor loss, std::initializer_list<Tensor> with_respect_to) {
  return gradients(loss, std::span<const Tensor>(with_respect_to.begin(), with_respect_to.size()));
}

bool is_gradient(Operator op) {
  const std::string path = op.path();
  std::string_view rest = path;
  for (auto slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    if (is_gradient_scope(rest.substr(0, slash))) return true;
    rest.remove_prefix(slash + 1);
  }
  return false;
}

}  // namespace purine
