// Conversion between the layouts of images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The same tensor with its elements in another physical order. Freezing inserts it where a kernel wants
/// another layout than its input has, and gives the kernel the layouts of both sides; in a user's graph it
/// does nothing. Any dtype.
class Reorder final : public Contract {
 public:
  explicit Reorder(Layout target) : target_(target) {}
  /// The layout of the output.
  Layout target() const { return target_; }
  std::string_view type() const override { return "reorder"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  /// Its two sides differ, which a rule for all flexible tensors cannot say; freezing sets them itself.
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  Layout target_;
};

}  // namespace purine::ops
