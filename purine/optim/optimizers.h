// Optimisers: operators that make the next value of every variable that is learnt.
#pragma once

#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/schedule.h"

namespace purine::optim {

/// How the learning rate changes over the iterations; its `base` is the optimiser's learning_rate.
using Schedule = ops::ScheduleOptions;

/// Plain stochastic gradient descent: weight -= rate * (gradient + weight_decay * weight).
struct SgdOptions {
  double learning_rate = 0.01;
  double weight_decay = 0;  ///< of variables that decay (VariableOptions::decays)
  Schedule schedule = {};
  double clip_value = 0;  ///< every element of every gradient is moved into ±clip_value; 0: it is not
  double clip_norm = 0;   ///< gradients are scaled so that their common norm is at most this; 0: they are not
  std::vector<Variable> variables = {};  ///< what is learnt; none: every trainable variable
};

/// With velocity = momentum * velocity + gradient + weight_decay * weight: weight -= rate * velocity, or
/// Nesterov's form of it.
struct MomentumOptions {
  double learning_rate = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  Schedule schedule = {};
  double clip_value = 0;
  double clip_norm = 0;
  std::vector<Variable> variables = {};
};

/// Kingma, Ba, "Adam: a method for stochastic optimization", 2014; the decay is added to the gradient.
struct AdamOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  Schedule schedule = {};
  double clip_value = 0;
  double clip_norm = 0;
  std::vector<Variable> variables = {};
};

/// Loshchilov, Hutter, "Decoupled weight decay regularization", 2017: the decay, times the rate, shrinks the
/// weight.
struct AdamwOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  Schedule schedule = {};
  double clip_value = 0;
  double clip_norm = 0;
  std::vector<Variable> variables = {};
};

/// What an optimiser has added.
struct Optimizer {
  Tensor learning_rate;  ///< of the iteration: an f32 scalar
  std::vector<Variable> variables;
  std::vector<Tensor> gradients;  ///< of the variables, checked and clipped
  Tensor gradient_norm;           ///< before clipping by it; valid only with clip_norm
};

/// Each adds to the loss's graph, for every trainable variable that the loss, a floating scalar, depends on:
/// its gradient (purine/gradient), the optimiser's state (variables named `optimizer/<path>/momentum`,
/// `…/first_moment`, `…/second_moment`, 0 at first) and its next value, computed in place. It also watches
/// the loss.
///
/// The loss and every gradient are checked: one that is not finite is an error that names it, before any
/// variable that it would change is changed. Gradients are clipped by value first, then by their norm.
///
/// Throws Error for options out of range, if there is nothing to learn, and if a variable has a next value
/// already.
Optimizer sgd(Tensor loss, const SgdOptions& options = {});
Optimizer momentum(Tensor loss, const MomentumOptions& options = {});
Optimizer adam(Tensor loss, const AdamOptions& options = {});
Optimizer adamw(Tensor loss, const AdamwOptions& options = {});

}  // namespace purine::optim
