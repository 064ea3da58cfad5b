// Dropout, in its training form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/excerpt.h"

namespace purine::ops {

/// Each element is set to 0 with the given probability, below 1, and otherwise divided by 1 - probability
/// (Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014). Which ones
/// depends on the run's seed, the operator, the iteration and the element's number in the whole tensor alone:
/// not on layout, splitting or workers. Inference leaves the operator out.
Tensor dropout(Tensor x, double probability, std::string_view name = "dropout");

/// Outputs: the result, and a u8 mask that is 1 where an element was kept.
class Dropout final : public Contract {
 public:
  /// Throws Error unless 0 <= probability < 1.
  explicit Dropout(double probability, std::optional<Excerpt> excerpt = {});
  double probability() const { return probability_; }
  /// Where the tensor lies within the whole one, if it is a piece.
  const std::optional<Excerpt>& excerpt() const { return excerpt_; }
  std::string_view type() const override { return "dropout"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  double probability_;
  std::optional<Excerpt> excerpt_;
};

/// output_gradient / (1 - probability) where the mask (input 1) is 1, else 0.
class DropoutGradient final : public Contract {
 public:
  explicit DropoutGradient(double probability) : probability_(probability) {}
  double probability() const { return probability_; }
  std::string_view type() const override { return "dropout_gradient"; }
  std::string attributes() const override;
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
  double probability_;
};

}  // namespace purine::ops
