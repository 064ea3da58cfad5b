// Initial values of variables.
#pragma once

#include <cstdint>
#include <functional>

#include "purine/graph/contract.h"

namespace purine::nn {

/// Makes the contract of a variable's initial value from the variable's shape and dtype:
/// `graph.variable("weight", info, nn::normal(0, 0.01)(info))`. Random values depend on the run's seed and
/// the variable's path alone.
using Initializer = std::function<ContractPtr(const TensorInfo&)>;

Initializer constant(double value);
/// Uniform in [low, high).
Initializer uniform(double low, double high);
Initializer normal(double mean, double deviation);

/// The numbers of elements that an output element is made from, and that an input element goes into.
struct Fans {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
/// The fans of a weight [out, in, …]: of a linear layer [O, I] they are I and O, of a convolution
/// [O, C / groups, KH, KW] they are C / groups * KH * KW and O * KH * KW. A shape with fewer than two
/// dimensions has none, and throws Error.
Fans fans_of(const Shape& weight);

enum class Fan : std::uint8_t { in, out, average };

/// Values whose variance is gain^2 / fan; the gain makes up for what the activation that follows takes away.
struct ScalingOptions {
  double gain = 1;
  Fan fan = Fan::in;
};
/// Uniform in ±gain * sqrt(3 / fan).
Initializer scaled_uniform(ScalingOptions options = {});
/// Normal with deviation gain / sqrt(fan).
Initializer scaled_normal(ScalingOptions options = {});

/// Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010:
/// variance 2 * gain^2 / (fan in + fan out).
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);

/// He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015: variance 2 / ((1 + slope^2) * fan), where
/// `slope` is that of the leaky rectifier that follows, 0 for relu.
Initializer kaiming_uniform(Fan fan = Fan::in, double slope = 0);
Initializer kaiming_normal(Fan fan = Fan::in, double slope = 0);

}  // namespace purine::nn
