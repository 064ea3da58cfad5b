#include "purine/ops/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

using Kind = ScheduleOptions::Kind;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::constant:
      return "constant";
    case Kind::step:
      return "step";
    case Kind::polynomial:
      return "polynomial";
    case Kind::cosine:
      return "cosine";
  }
  return "?";
}

double learning_rate_at(const ScheduleOptions& options, std::int64_t iteration) {
  if (iteration < options.warm_up) {
    return options.base * static_cast<double>(iteration + 1) / static_cast<double>(options.warm_up);
  }
  const std::int64_t t = iteration - options.warm_up;
  const double done = std::min(1.0, static_cast<double>(t) / static_cast<double>(options.length));
  switch (options.kind) {
    case Kind::constant:
      return options.base;
    case Kind::step:
      return options.base * std::pow(options.factor, static_cast<double>(t / options.step));
    case Kind::polynomial:
      return options.last + (options.base - options.last) * std::pow(1 - done, options.power);
    case Kind::cosine:
      return options.last + (options.base - options.last) * (1 + std::cos(std::numbers::pi * done)) / 2;
  }
  return options.base;
}

Tensor learning_rate(Tensor iteration, ScheduleOptions options, std::string_view name) {
  return iteration.graph().add(std::make_shared<LearningRate>(options), {iteration}, name).output();
}

LearningRate::LearningRate(ScheduleOptions options) : options_(options) {
  const auto check = [this](bool good, std::string_view option, double value, std::string_view need) {
    if (!good) throw Error(type(), fmt::format("{} is {}, it must be {}", option, value, need));
  };
  check(std::isfinite(options.base) && options.base >= 0, "base", options.base, "finite and at least 0");
  check(options.warm_up >= 0, "warm_up", static_cast<double>(options.warm_up), "at least 0");
  check(options.step >= 1, "step", static_cast<double>(options.step), "at least 1");
  check(std::isfinite(options.factor) && options.factor >= 0, "factor", options.factor,
        "finite and at least 0");
  check(options.length >= 1, "length", static_cast<double>(options.length), "at least 1");
  check(std::isfinite(options.power) && options.power > 0, "power", options.power, "finite and above 0");
  check(std::isfinite(options.last) && options.last >= 0, "last", options.last, "finite and at least 0");
}

std::string LearningRate::attributes() const {
  std::string text = fmt::format("kind={} base={}", name_of(options_.kind), options_.base);
  if (options_.warm_up > 0) text += fmt::format(" warm_up={}", options_.warm_up);
  switch (options_.kind) {
    case Kind::constant:
      break;
    case Kind::step:
      text += fmt::format(" step={} factor={}", options_.step, options_.factor);
      break;
    case Kind::polynomial:
      text += fmt::format(" length={} power={} last={}", options_.length, options_.power, options_.last);
      break;
    case Kind::cosine:
      text += fmt::format(" length={} last={}", options_.length, options_.last);
      break;
  }
  return text;
}

std::vector<TensorInfo> LearningRate::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  if (!(inputs[0] == TensorInfo{{}, DType::i64})) {
    throw Error(type(), "the iteration is " + inputs[0].text() + ", i64[] is needed",
                "ops::iteration(graph)");
  }
  return {{{}, DType::f32}};
}

Cost LearningRate::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 10);
}

void register_schedule(Registry& registry) {
  const SampleInput iteration{{{}, DType::i64}, {Values::Kind::integer, 100}, false};
  const auto make = [](ScheduleOptions options) {
    return [=](DType) { return std::make_shared<LearningRate>(options); };
  };
  registry.add("learning_rate",
               {{"constant", make({}), {iteration}, false},
                {"warm_up", make({.base = 0.5, .warm_up = 200}), {iteration}, false},
                {"step",
                 make({.kind = Kind::step, .base = 0.1, .warm_up = 3, .step = 7, .factor = 0.5}),
                 {iteration},
                 false},
                {"polynomial",
                 make({.kind = Kind::polynomial, .base = 0.1, .length = 120, .power = 2, .last = 0.01}),
                 {iteration},
                 false},
                {"cosine",
                 make({.kind = Kind::cosine, .base = 0.1, .length = 120, .last = 0.001}),
                 {iteration},
                 false}});
}

}  // namespace purine::ops
