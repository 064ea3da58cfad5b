#include "purine/optim/optimizers.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "purine/core/error.h"
#include "purine/gradient/gradient.h"
#include "purine/ops/binary.h"
#include "purine/ops/cast.h"
#include "purine/ops/check_finite.h"
#include "purine/ops/clip.h"
#include "purine/ops/constant.h"
#include "purine/ops/copy.h"
#include "purine/ops/iteration.h"
#include "purine/ops/unary.h"
#include "purine/ops/update.h"

namespace purine::optim {
namespace {

/// Checks options; `optimizer` is the component of its errors.
class Checker {
 public:
  explicit Checker(std::string_view optimizer) : optimizer_(optimizer) {}

  void at_least_zero(std::string_view name, double value) const {
    if (!(std::isfinite(value) && value >= 0)) fail(name, value, "a finite number of at least 0");
  }
  void above_zero(std::string_view name, double value) const {
    if (!(std::isfinite(value) && value > 0)) fail(name, value, "a finite number above 0");
  }
  void fraction(std::string_view name, double value) const {
    if (!(value >= 0 && value < 1)) fail(name, value, "a number from 0 to below 1");
  }

  Error error(const std::string& message, std::string_view hint = {}) const {
    return Error(optimizer_, message, hint);
  }

 private:
  [[noreturn]] void fail(std::string_view name, double value, const char* wanted) const {
    throw error(fmt::format("{} is {}, it must be {}", name, value, wanted));
  }

  std::string_view optimizer_;
};

template <typename Options>
Checker check_common(std::string_view optimizer, const Options& options) {
  const Checker check(optimizer);
  check.at_least_zero("learning_rate", options.learning_rate);
  check.at_least_zero("weight_decay", options.weight_decay);
  check.at_least_zero("clip_value", options.clip_value);
  check.at_least_zero("clip_norm", options.clip_norm);
  return check;
}

/// `optimizer/<variable>/<name>`.
std::string name_for(Variable variable, std::string_view name) {
  return "optimizer/" + variable.path() + "/" + std::string(name);
}

Tensor as(Tensor scalar, DType dtype, std::string_view name) {
  return scalar.dtype() == dtype ? scalar : ops::cast(scalar, dtype, name);
}

/// A scalar wherever variables lie: at most one copy to each location.
class Everywhere {
 public:
  Everywhere() = default;
  Everywhere(Tensor scalar, std::string_view name) : scalar_(scalar), name_(name) {}

  Tensor at(Location location) {
    const auto [entry, inserted] = copies_.try_emplace(location);
    if (inserted) entry->second = ops::copy(scalar_, location, name_);
    return entry->second;
  }

 private:
  Tensor scalar_;
  std::string name_;
  std::map<Location, Tensor> copies_;
};

/// An optimiser while it is built.
struct Building {
  Optimizer optimizer;
  Everywhere rate;
  Everywhere iteration;
};

/// The learning rate; it depends on the checked loss, so that no variable changes before the loss is known to
/// be finite. 0 times a finite number changes nothing.
Tensor rate_after(Tensor checked_loss, Tensor iteration, double base, Schedule schedule) {
  schedule.base = base;
  const Tensor rate = ops::learning_rate(iteration, schedule, "optimizer/schedule");
  const Tensor zero = ops::scale(as(checked_loss, DType::f32, "optimizer/loss_f32"), 0, "optimizer/gate");
  return ops::add(rate, zero, "optimizer/learning_rate");
}

void clip_by_norm(Optimizer& optimizer, double limit) {
  Graph& graph = optimizer.learning_rate.graph();
  const Tensor norm = ops::global_norm(optimizer.gradients, "optimizer/gradient_norm");
  auto home = graph.at(norm.location());
  // As PyTorch's: limit / (norm + 1e-6), if that is below 1.
  const Tensor numerator = ops::constant(graph, norm.info(), limit, "optimizer/clip_norm/limit");
  const Tensor ratio = ops::divide(numerator, ops::shift(norm, 1e-6, "optimizer/clip_norm/shift"),
                                   "optimizer/clip_norm/ratio");
  Everywhere factor(ops::clip(ratio, 0, 1, "optimizer/clip_norm/factor"), "optimizer/clip_norm/copy");
  for (std::size_t i = 0; i < optimizer.gradients.size(); ++i) {
    Tensor& gradient = optimizer.gradients[i];
    const Variable variable = optimizer.variables[i];
    auto placement = graph.at(variable.location());
    const Tensor own =
        as(factor.at(variable.location()), gradient.dtype(), name_for(variable, "clip_norm_factor"));
    gradient = ops::multiply(gradient, own, name_for(variable, "clip_norm"));
  }
  optimizer.gradient_norm = norm;
}

/// The variables that are to be learnt.
template <typename Options>
std::vector<Tensor> learnt_by(Graph& graph, const Options& options) {
  std::vector<Tensor> learnt(options.variables.begin(), options.variables.end());
  if (!learnt.empty()) return learnt;
  for (const Variable variable : graph.variables()) {
    if (variable.trainable()) learnt.push_back(variable);
  }
  return learnt;
}

/// Adds what all optimisers share: checks, gradients, clipping and the learning rate.
template <typename Options>
Building prepare(Tensor loss, const Checker& check, const Options& options) {
  Graph& graph = loss.graph();
  auto home = graph.at(loss.location());
  const Tensor iteration = ops::iteration(graph, "optimizer/iteration");
  const Tensor checked_loss = ops::check_finite(loss, "the loss", "optimizer/check_loss");
  const std::vector<Tensor> learnt = learnt_by(graph, options);
  Building building;
  Optimizer& optimizer = building.optimizer;
  optimizer.learning_rate = rate_after(checked_loss, iteration, options.learning_rate, options.schedule);
  building.rate = Everywhere(optimizer.learning_rate, "optimizer/learning_rate_copy");
  building.iteration = Everywhere(iteration, "optimizer/iteration_copy");
  const std::vector<Tensor> gradients = purine::gradients(checked_loss, learnt);
  for (std::size_t i = 0; i < learnt.size(); ++i) {
    if (!gradients[i].valid()) continue;
    const Variable variable = graph.as_variable(learnt[i]);
    if (variable.has_next()) {
      throw check
          .error("has a next value already, " + variable.next().path(),
                 "one optimiser learns a variable; name others in the options' variables")
          .at(variable.path());
    }
    auto placement = graph.at(variable.location());
    Tensor gradient = ops::check_finite(gradients[i], "the gradient of " + variable.path(),
                                        name_for(variable, "check_finite"));
    if (options.clip_value > 0) {
      gradient =
          ops::clip(gradient, -options.clip_value, options.clip_value, name_for(variable, "clip_value"));
    }
    optimizer.variables.push_back(variable);
    optimizer.gradients.push_back(gradient);
  }
  if (optimizer.variables.empty()) {
    throw check.error("the loss " + loss.path() + " depends on no trainable variable",
                      "layers of purine/nn make variables; Graph::variable makes trainable ones by default");
  }
  if (options.clip_norm > 0) clip_by_norm(optimizer, options.clip_norm);
  graph.watch(loss);
  return building;
}

Variable make_state(Variable variable, std::string_view name) {
  return variable.graph().variable(name_for(variable, name), variable.info(),
                                   ops::make_constant(variable.info(), 0),
                                   {.trainable = false, .decays = false});
}

/// Calls `update(variable, gradient, learning rate, decay)` for each variable, at its location.
template <typename Options, typename Update>
Optimizer update_all(Building building, const Options& options, Update&& update) {
  const Optimizer& optimizer = building.optimizer;
  for (std::size_t i = 0; i < optimizer.variables.size(); ++i) {
    const Variable variable = optimizer.variables[i];
    auto placement = variable.graph().at(variable.location());
    update(variable, optimizer.gradients[i], building.rate.at(variable.location()),
           variable.decays() ? options.weight_decay : 0);
  }
  return building.optimizer;
}

template <typename Options>
Optimizer add_adam(Tensor loss, std::string_view name, const Options& options, bool decoupled) {
  const Checker check = check_common(name, options);
  check.fraction("beta1", options.beta1);
  check.fraction("beta2", options.beta2);
  check.above_zero("epsilon", options.epsilon);
  Building building = prepare(loss, check, options);
  Everywhere iteration = building.iteration;
  const auto update = [&](Variable variable, Tensor gradient, Tensor rate, double decay) {
    const Variable first = make_state(variable, "first_moment");
    const Variable second = make_state(variable, "second_moment");
    const ops::AdamResult next =
        ops::adam_update(variable, first, second, gradient, rate, iteration.at(variable.location()),
                         {.beta1 = options.beta1,
                          .beta2 = options.beta2,
                          .epsilon = options.epsilon,
                          .weight_decay = decay,
                          .decoupled = decoupled},
                         name_for(variable, "adam_update"));
    Graph& graph = variable.graph();
    graph.set_next(variable, next.weight);
    graph.set_next(first, next.first_moment);
    graph.set_next(second, next.second_moment);
  };
  return update_all(std::move(building), options, update);
}

}  // namespace

Optimizer sgd(Tensor loss, const SgdOptions& options) {
  const Checker check = check_common("sgd", options);
  const auto update = [&](Variable variable, Tensor gradient, Tensor rate, double decay) {
    const Tensor next = ops::sgd_update(variable, gradient, rate, {decay}, name_for(variable, "sgd_update"));
    variable.graph().set_next(variable, next);
  };
  return update_all(prepare(loss, check, options), options, update);
}

Optimizer momentum(Tensor loss, const MomentumOptions& options) {
  const Checker check = check_common("momentum", options);
  check.fraction("momentum", options.momentum);
  if (options.nesterov && options.momentum == 0) {
    throw check.error("nesterov needs a momentum above 0", "set momentum, for instance to 0.9");
  }
  const auto update = [&](Variable variable, Tensor gradient, Tensor rate, double decay) {
    const Variable velocity = make_state(variable, "momentum");
    const ops::MomentumResult next = ops::momentum_update(
        variable, velocity, gradient, rate,
        {.momentum = options.momentum, .weight_decay = decay, .nesterov = options.nesterov},
        name_for(variable, "momentum_update"));
    variable.graph().set_next(variable, next.weight);
    variable.graph().set_next(velocity, next.velocity);
  };
  return update_all(prepare(loss, check, options), options, update);
}

Optimizer adam(Tensor loss, const AdamOptions& options) {
  return add_adam(loss, "adam", options, false);
}

Optimizer adamw(Tensor loss, const AdamwOptions& options) {
  return add_adam(loss, "adamw", options, true);
}

}  // namespace purine::optim
