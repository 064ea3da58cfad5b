// 1 x 1 convolutions of one image as one operator, and the sum of their gradients by it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// ops::conv2d of one image with each of several kernels of 1 x 1, with stride 1 and without a bias: the
/// image is read once where the convolutions by themselves would read it again and again, as at the head of
/// an inception module.
///
/// `image` is [N, C, H, W], each weight [O, C, 1, 1], all of one floating dtype; each result [N, O, H, W] of
/// its weight. Throws Error where the shapes do not fit.
std::vector<Tensor> sibling_conv2d(Tensor image, std::span<const Tensor> weights,
                                   std::string_view name = "sibling_conv2d");

/// Inputs image and at least one weight; outputs a result for each weight.
class SiblingConv2d final : public Contract {
 public:
  std::string_view type() const override { return "sibling_conv2d"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {1, LayoutRule::all, true}; }
};

/// The gradient by the image: the sum of what flows back from all results, and from elsewhere. Inputs are,
/// for `siblings` results, their gradients [N, O, H, W] and then their weights [O, C, 1, 1], and last, with
/// `adds`, another gradient by the image, [N, C, H, W], which the output may overwrite; the output is [N, C,
/// H, W].
class SiblingConv2dInputGradient final : public Contract {
 public:
  SiblingConv2dInputGradient(std::size_t siblings, bool adds) : siblings_(siblings), adds_(adds) {}
  std::size_t siblings() const { return siblings_; }
  bool adds() const { return adds_; }

  std::string_view type() const override { return "sibling_conv2d_input_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override;
  LayoutRule layouts() const override;

 private:
  std::size_t siblings_;
  bool adds_;
};

}  // namespace purine::ops
