// The variance that a batch suggests for all that it was drawn from.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

/// variance * n / (n - 1) for a `variance` [C] that was divided by n, the number of elements of `x` [N, C, …]
/// in a channel; itself where n is 1. Running variances are unbiased, as PyTorch's are. Of x only the shape
/// counts, which follows the batch where a graph is made for another number of samples.
Tensor unbiased_variance(Tensor variance, Tensor x, std::string_view name = "unbiased_variance");

/// Inputs variance and x; output the unbiased variance.
class UnbiasedVariance final : public Contract {
 public:
  std::string_view type() const override { return "unbiased_variance"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {2, 0, false}; }
};

}  // namespace purine::ops
