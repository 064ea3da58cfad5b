// Rectified linear unit.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

/// max(x, 0), element by element; the gradient at 0 is 0. Any floating tensor, any shape.
Tensor relu(Tensor x, std::string_view name = "relu");

/// `output_gradient` where `output` (relu's result) is above 0, else 0.
class ReluGradient final : public Contract {
 public:
  std::string_view type() const override { return "relu_gradient"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
};

class Relu final : public Contract {
 public:
  std::string_view type() const override { return "relu"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
};

}  // namespace purine::ops
