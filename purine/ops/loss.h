// Losses and accuracy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The mean over N samples of -log softmax(logits)[label]: a scalar of the dtype of `logits` [N, K]. `labels`
/// is [N] of u8, i32 or i64, each in 0..K-1; another one is an error when the operator runs, which names the
/// sample, the label and the range. Computed from the logits minus their maximum; f32 is summed in f64.
/// Logits [[2.5, 0, 0], [0, 0, 2.5]] and labels [0, 2] give 0.152008.
Tensor softmax_cross_entropy(Tensor logits, Tensor labels, std::string_view name = "softmax_cross_entropy");
/// The mean over all elements of (prediction - target)^2: a scalar.
Tensor mean_squared_error(Tensor prediction, Tensor target, std::string_view name = "mean_squared_error");
/// The fraction of the samples whose label is among the `top` largest logits: an f32 scalar. Of equal logits
/// the one of the lower class counts as the larger, and NaN is never among them. Labels as of
/// `softmax_cross_entropy`. It has no gradient.
Tensor accuracy(Tensor logits, Tensor labels, int top = 1, std::string_view name = "accuracy");

/// The number that a batch's sum is divided by, and where a piece's samples begin in the whole batch: a piece
/// divides by the whole's number of samples, so that the pieces' results add up to the mean.
struct BatchShare {
  std::int64_t divisor = 0;       ///< 0: the operator's own number of samples (or elements)
  std::int64_t first_sample = 0;  ///< for messages

  std::string text() const;
  /// The share of a piece; `count` is the whole's number that a divisor of 0 stands for.
  BatchShare piece(std::int64_t count, const SplitRule& rule, const Piece& piece) const;
};

class SoftmaxCrossEntropy final : public Contract {
 public:
  explicit SoftmaxCrossEntropy(BatchShare share = {}) : share_(share) {}
  const BatchShare& share() const { return share_; }
  std::string_view type() const override { return "softmax_cross_entropy"; }
  std::string attributes() const override { return share_.text(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  BatchShare share_;
};

/// (softmax(logits) - one_hot(labels)) * output_gradient / N. Inputs: logits, labels, output gradient
/// (scalar).
class SoftmaxCrossEntropyGradient final : public Contract {
 public:
  explicit SoftmaxCrossEntropyGradient(BatchShare share = {}) : share_(share) {}
  const BatchShare& share() const { return share_; }
  std::string_view type() const override { return "softmax_cross_entropy_gradient"; }
  std::string attributes() const override { return share_.text(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  BatchShare share_;
};

class MeanSquaredError final : public Contract {
 public:
  /// `divisor` 0: the number of elements.
  explicit MeanSquaredError(std::int64_t divisor = 0) : divisor_(divisor) {}
  std::int64_t divisor() const { return divisor_; }
  std::string_view type() const override { return "mean_squared_error"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  std::int64_t divisor_;
};

/// 2 (prediction - target) * output_gradient / elements: the gradient of the error by the prediction. Inputs:
/// prediction, target, output gradient (scalar).
class MeanSquaredErrorGradient final : public Contract {
 public:
  explicit MeanSquaredErrorGradient(std::int64_t divisor = 0) : divisor_(divisor) {}
  std::int64_t divisor() const { return divisor_; }
  std::string_view type() const override { return "mean_squared_error_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override {
    return {{0, 0, Sharing::Kind::overwrite}, {1, 0, Sharing::Kind::overwrite}};
  }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  std::int64_t divisor_;
};

class Accuracy final : public Contract {
 public:
  /// Throws Error unless top is at least 1.
  explicit Accuracy(int top, BatchShare share = {});
  int top() const { return top_; }
  const BatchShare& share() const { return share_; }
  std::string_view type() const override { return "accuracy"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  int top_;
  BatchShare share_;
};

}  // namespace purine::ops
