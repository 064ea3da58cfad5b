// Two-dimensional convolution and its gradients.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "purine/graph/graph.h"
#include "purine/ops/window.h"

namespace purine::ops {

struct Conv2dOptions {
  std::array<std::int64_t, 2> stride{1, 1};         ///< vertical, horizontal
  std::array<std::int64_t, 4> padding{0, 0, 0, 0};  ///< zeros added at the top, left, bottom, right
  std::array<std::int64_t, 2> dilation{1, 1};       ///< distance of a kernel's neighbouring elements
  std::int64_t groups = 1;  ///< channels are divided into groups that do not see each other

  Window vertical(std::int64_t kernel) const {
    return {kernel, stride[0], padding[0], padding[2], dilation[0]};
  }
  Window horizontal(std::int64_t kernel) const {
    return {kernel, stride[1], padding[1], padding[3], dilation[1]};
  }
};

/// Cross-correlation of images with kernels, as deep learning calls convolution:
///
///   y[n, o, i, j] = bias[o] + sum over c, p, q of
///                   x[n, g(o) * C / groups + c, i * stride - top + p * dilation, …] * weight[o, c, p, q]
///
/// where elements outside the image are 0 and g(o) is the group of output channel o.
///
/// `image` is [N, C, H, W], `weight` [O, C / groups, KH, KW], `bias` [O] or an empty handle for none; all of
/// one floating dtype. The result is [N, O, OH, OW] with
/// OH = (H + top + bottom - dilation * (KH - 1) - 1) / stride + 1, rounded down, and OW likewise.
/// Throws Error where the shapes do not fit.
Tensor conv2d(Tensor image, Tensor weight, Tensor bias = {}, Conv2dOptions options = {},
              std::string_view name = "conv2d");

/// What the three contracts have in common.
class Conv2dContract : public Contract {
 public:
  explicit Conv2dContract(Conv2dOptions options) : options_(options) {}
  const Conv2dOptions& options() const { return options_; }
  std::string attributes() const override;
  std::vector<Sharing> sharing() const override { return {}; }

 protected:
  Conv2dOptions options_;
};

/// Inputs image, weight and, where there is one, bias; output the result.
class Conv2d final : public Conv2dContract {
 public:
  /// With `adds_bias` false, a bias that is given is left out: of an operator divided over its input
  /// channels, whose pieces' outputs are summed, only the first piece adds it.
  explicit Conv2d(Conv2dOptions options, bool adds_bias = true)
      : Conv2dContract(options), adds_bias_(adds_bias) {}
  bool adds_bias() const { return adds_bias_; }

  std::string_view type() const override { return "conv2d"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  LayoutRule layouts() const override;

 private:
  bool adds_bias_;
};

/// Gradient by the image. Inputs: the output's gradient [N, O, OH, OW] and the weight [O, C / groups, KH,
/// KW]; output [N, C, H, W].
class Conv2dInputGradient final : public Conv2dContract {
 public:
  /// `extents` are the image's H and W, which strides leave open.
  Conv2dInputGradient(Conv2dOptions options, std::array<std::int64_t, 2> extents)
      : Conv2dContract(options), extents_(extents) {}

  std::string_view type() const override { return "conv2d_input_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  LayoutRule layouts() const override;

 private:
  std::array<std::int64_t, 2> extents_;
};

/// Gradient by the weight and, where asked for, by the bias. Inputs: the image [N, C, H, W] and the output's
/// gradient [N, O, OH, OW]; outputs [O, C / groups, KH, KW] and [O].
class Conv2dWeightGradient final : public Conv2dContract {
 public:
  /// `kernel` is KH and KW.
  Conv2dWeightGradient(Conv2dOptions options, std::array<std::int64_t, 2> kernel, bool has_bias)
      : Conv2dContract(options), kernel_(kernel), has_bias_(has_bias) {}
  bool has_bias() const { return has_bias_; }

  std::string_view type() const override { return "conv2d_weight_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  LayoutRule layouts() const override;

 private:
  std::array<std::int64_t, 2> kernel_;
  bool has_bias_;
};

}  // namespace purine::ops
