// The sum of several tensors.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The element-wise sum of tensors of one shape and dtype (floating, i32 or i64), added one after the other
/// in their order; of one tensor, the tensor itself.
Tensor sum_n(std::span<const Tensor> tensors, std::string_view name = "sum_n");
Tensor sum_n(std::initializer_list<Tensor> tensors, std::string_view name = "sum_n");

class SumN final : public Contract {
 public:
  std::string_view type() const override { return "sum_n"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  /// The first two, as far as there are two, are read before the same elements of the sum are written.
  std::vector<Sharing> sharing() const override {
    return {{0, 0, Sharing::Kind::overwrite}, {1, 0, Sharing::Kind::overwrite}};
  }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
};

}  // namespace purine::ops
