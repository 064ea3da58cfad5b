#include "purine/nn/initializer.h"

#include <cmath>

#include "purine/core/error.h"
#include "purine/ops/constant.h"
#include "purine/ops/random.h"

namespace purine::nn {
namespace {

double fan_of(const Shape& weight, Fan fan) {
  const Fans fans = fans_of(weight);
  const auto in = static_cast<double>(fans.in);
  const auto out = static_cast<double>(fans.out);
  switch (fan) {
    case Fan::in:
      return in;
    case Fan::out:
      return out;
    case Fan::average:
      break;
  }
  return (in + out) / 2;
}

double rectifier_gain(double slope) {
  return std::sqrt(2 / (1 + slope * slope));
}

}  // namespace

Initializer constant(double value) {
  return [=](const TensorInfo& info) { return ops::make_constant(info, value); };
}

Initializer uniform(double low, double high) {
  return [=](const TensorInfo& info) { return ops::make_random_uniform(info, low, high); };
}

Initializer normal(double mean, double deviation) {
  return [=](const TensorInfo& info) { return ops::make_random_normal(info, mean, deviation); };
}

Fans fans_of(const Shape& weight) {
  if (weight.rank() < 2) {
    throw Error("initializer", "a tensor " + weight.text() + " has no fans; they need [out, in, …]",
                "initialise it with nn::constant, nn::uniform or nn::normal");
  }
  std::int64_t window = 1;
  for (int i = 2; i < weight.rank(); ++i) window *= weight[i];
  return {weight[1] * window, weight[0] * window};
}

Initializer scaled_uniform(ScalingOptions options) {
  return [=](const TensorInfo& info) {
    const double bound = options.gain * std::sqrt(3 / fan_of(info.shape, options.fan));
    return ops::make_random_uniform(info, -bound, bound);
  };
}

Initializer scaled_normal(ScalingOptions options) {
  return [=](const TensorInfo& info) {
    return ops::make_random_normal(info, 0, options.gain / std::sqrt(fan_of(info.shape, options.fan)));
  };
}

Initializer xavier_uniform(double gain) {
  return scaled_uniform({gain, Fan::average});
}

Initializer xavier_normal(double gain) {
  return scaled_normal({gain, Fan::average});
}

Initializer kaiming_uniform(Fan fan, double slope) {
  return scaled_uniform({rectifier_gain(slope), fan});
}

Initializer kaiming_normal(Fan fan, double slope) {
  return scaled_normal({rectifier_gain(slope), fan});
}

}  // namespace purine::nn
