// A guard against NaN and infinity.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// x itself, after a look at every element: where one is NaN or infinite, the operator throws an Error when
/// it runs, so that nothing that depends on it happens. `what` names the tensor in the message, which says
/// the first such element by its position: `[check_finite] …: gradient of conv1/weight is NaN at [3, 0, 2, 1]
/// of f32[20, 1, 5, 5]`.
Tensor check_finite(Tensor x, std::string what, std::string_view name = "check_finite");

class CheckFinite final : public Contract {
 public:
  explicit CheckFinite(std::string what) : what_(std::move(what)) {}
  const std::string& what() const { return what_; }
  std::string_view type() const override { return "check_finite"; }
  std::string attributes() const override { return "what=" + what_; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  std::string what_;
};

}  // namespace purine::ops
