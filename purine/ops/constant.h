// Tensors of one value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// A tensor whose elements all are `value`, of any dtype (which must hold the value).
Tensor constant(Graph& graph, TensorInfo info, double value, std::string_view name = "constant");
/// The same as the initial value of a variable.
ContractPtr make_constant(TensorInfo info, double value);

class Constant final : public Contract {
 public:
  /// Throws Error where the value does not fit an integer dtype.
  Constant(TensorInfo info, double value);
  const TensorInfo& info() const { return info_; }
  double value() const { return value_; }
  std::string_view type() const override { return "constant"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  TensorInfo info_;
  double value_;
};

}  // namespace purine::ops
