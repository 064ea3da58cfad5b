// Brings a tensor to another location.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

/// `x` at another location; `x` itself if it lies there already. Any dtype and shape. The gradient is copied
/// back.
Tensor copy(Tensor x, Location location, std::string_view name = "copy");

/// The only operator whose input may lie elsewhere: it and its output are at the destination.
class Copy final : public Contract {
 public:
  std::string_view type() const override { return "copy"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
  bool crosses_locations() const override { return true; }
};

}  // namespace purine::ops
