// Softmax and its logarithm along an axis.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// exp(x) divided by its sum along `axis` (negative: counted from the last); computed from x minus its
/// maximum, so that no finite x overflows.
Tensor softmax(Tensor x, int axis = -1, std::string_view name = "softmax");
/// x minus the logarithm of the sum of exp(x) along `axis`, computed as stably.
Tensor log_softmax(Tensor x, int axis = -1, std::string_view name = "log_softmax");

/// What the four operators of this file have in common: floating tensors of one shape, any layout, and any
/// dimension but the axis may be split.
class AlongAxis : public Contract {
 public:
  /// At least 0.
  int axis() const { return axis_; }
  std::string_view type() const final { return type_; }
  std::string attributes() const final;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const final;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const final;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const final {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const final;
  std::vector<Sharing> sharing() const final { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const final { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  AlongAxis(std::string_view type, int axis, int inputs, double operations_per_element)
      : type_(type), axis_(axis), inputs_(inputs), operations_per_element_(operations_per_element) {}

 private:
  std::string_view type_;
  int axis_;
  int inputs_;
  double operations_per_element_;
};

class Softmax final : public AlongAxis {
 public:
  explicit Softmax(int axis) : AlongAxis("softmax", axis, 1, 14) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

/// output * (output_gradient - sum(output_gradient * output)), where `output` (input 1) is softmax's result.
class SoftmaxGradient final : public AlongAxis {
 public:
  explicit SoftmaxGradient(int axis) : AlongAxis("softmax_gradient", axis, 2, 4) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class LogSoftmax final : public AlongAxis {
 public:
  explicit LogSoftmax(int axis) : AlongAxis("log_softmax", axis, 1, 14) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

/// output_gradient - exp(output) * sum(output_gradient), where `output` (input 1) is log_softmax's result.
class LogSoftmaxGradient final : public AlongAxis {
 public:
  explicit LogSoftmaxGradient(int axis) : AlongAxis("log_softmax_gradient", axis, 2, 13) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

}  // namespace purine::ops
