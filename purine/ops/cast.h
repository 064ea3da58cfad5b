// Conversion between dtypes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The same numbers as another dtype; x itself if it has that dtype. To an integer type, fractions are cut
/// off, values outside of its range become its nearest bound, and NaN becomes 0. Gradients flow between
/// floating dtypes.
Tensor cast(Tensor x, DType dtype, std::string_view name = "cast");

class Cast final : public Contract {
 public:
  explicit Cast(DType dtype) : dtype_(dtype) {}
  DType dtype() const { return dtype_; }
  std::string_view type() const override { return "cast"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  DType dtype_;
};

}  // namespace purine::ops
