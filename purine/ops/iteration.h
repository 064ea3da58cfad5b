// The number of the iteration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The iteration's number as an i64 scalar: 0 for the first of the training, and counted on across resumes.
Tensor iteration(Graph& graph, std::string_view name = "iteration");

class Iteration final : public Contract {
 public:
  std::string_view type() const override { return "iteration"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 0, false}; }
};

}  // namespace purine::ops
