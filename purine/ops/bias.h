// A value per channel added to a tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// x + b, where b is [C] and C is the extent of x along `axis` (negative: counted from the last): the biases
/// of a convolution (axis 1) or of a linear layer (axis -1).
Tensor bias(Tensor x, Tensor b, int axis = 1, std::string_view name = "bias");

class Bias final : public Contract {
 public:
  explicit Bias(int axis) : axis_(axis) {}
  /// At least 0.
  int axis() const { return axis_; }
  std::string_view type() const override { return "bias"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {1, 1, false}; }

 private:
  int axis_;
};

}  // namespace purine::ops
