// The learning rate of an iteration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// How the learning rate changes, counted in iterations. During the first `warm_up` iterations it rises
/// linearly: iteration t has base * (t + 1) / warm_up. Then the schedule proper begins, with t counted from
/// there.
struct ScheduleOptions {
  enum class Kind : std::uint8_t {
    constant,    ///< base
    step,        ///< base * factor^(t / step), the quotient cut to an integer
    polynomial,  ///< last + (base - last) * (1 - t / length)^power up to `length`, then `last`
    cosine,      ///< last + (base - last) * (1 + cos(pi * t / length)) / 2 up to `length`, then `last`
  };
  Kind kind = Kind::constant;
  double base = 0.01;
  std::int64_t warm_up = 0;
  std::int64_t step = 1;    ///< of `step`: iterations from one reduction to the next
  double factor = 0.1;      ///< of `step`
  std::int64_t length = 1;  ///< of `polynomial` and `cosine`: iterations to their end, without the warm-up
  double power = 1;         ///< of `polynomial`
  double last = 0;          ///< of `polynomial` and `cosine`: the rate at their end
};

/// `constant`, `step`, `polynomial`, `cosine`.
std::string_view name_of(ScheduleOptions::Kind kind);
/// The rate of an iteration by the formulas above.
double learning_rate_at(const ScheduleOptions& options, std::int64_t iteration);

/// The rate of an iteration, an i64 scalar, as an f32 scalar. Throws Error for options outside of their
/// ranges.
Tensor learning_rate(Tensor iteration, ScheduleOptions options, std::string_view name = "learning_rate");

class LearningRate final : public Contract {
 public:
  explicit LearningRate(ScheduleOptions options);
  const ScheduleOptions& options() const { return options_; }
  std::string_view type() const override { return "learning_rate"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  ScheduleOptions options_;
};

}  // namespace purine::ops
