// An order between operators that no value asks for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// `x`, once `others`, any tensors at its location, are there too: what reads the result comes after what
/// makes them. It is a view of x, and there is nothing to do. Gradients flow through x alone.
Tensor after(Tensor x, std::span<const Tensor> others, std::string_view name = "after");

class After final : public Contract {
 public:
  explicit After(int others) : others_(others) {}
  std::string_view type() const override { return "after"; }
  std::string attributes() const override { return "others=" + std::to_string(others_); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::view}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  int others_;
};

}  // namespace purine::ops
