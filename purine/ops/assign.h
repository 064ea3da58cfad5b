// Copies a value over a variable.
#pragma once

#include "purine/graph/graph.h"

namespace purine::ops {

/// The next value of a variable as a copy of `value`: made when a program is frozen, where the next value
/// cannot be computed in the variable's own storage. Inputs: variable, value, of equal info; output: the new
/// value, which overwrites the variable.
class Assign final : public Contract {
 public:
  std::string_view type() const override { return "assign"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {}; }
};

}  // namespace purine::ops
