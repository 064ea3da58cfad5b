// Exponential moving averages: running statistics.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

/// running * (1 - momentum) + momentum * factor * value, element by element: the next value of a running
/// statistic. `momentum` is the weight of the new value, in [0, 1], as PyTorch counts it. Both tensors have
/// one shape and floating dtype.
Tensor moving_average(Tensor running, Tensor value, double momentum, double factor = 1,
                      std::string_view name = "moving_average");

/// Inputs running and value; output the running statistic's next value, which may lie in place of the last.
class MovingAverage final : public Contract {
 public:
  MovingAverage(double momentum, double factor) : momentum_(momentum), factor_(factor) {}
  double momentum() const { return momentum_; }
  double factor() const { return factor_; }

  std::string_view type() const override { return "moving_average"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override {
    return {{0, 0, Sharing::Kind::overwrite}, {1, 0, Sharing::Kind::overwrite}};
  }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  double momentum_;
  double factor_;
};

}  // namespace purine::ops
