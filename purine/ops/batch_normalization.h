// Batch normalisation, in training and in inference.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

struct BatchNormalizationOptions {
  double epsilon = 1e-5;  ///< added to the variance
  bool relu = false;      ///< y is rectified, as if by ops::relu
  bool adds = false;      ///< the operator's last input, like x, is added to y, before that is rectified
};

struct BatchNormalizationResult {
  Tensor y;         ///< like x
  Tensor mean;      ///< [C]: of this batch
  Tensor variance;  ///< [C]: of this batch, divided by n; `unbiased_variance` makes that n - 1
};

/// Normalises every channel by the statistics of this batch (Ioffe, Szegedy, "Batch normalization", 2015):
///
///   y[n, c, …] = scale[c] * (x[n, c, …] - mean[c]) / sqrt(variance[c] + epsilon) + shift[c]
///
/// where mean and variance are those over n and all dimensions after c. `x` is [N, C, …], `scale` and `shift`
/// are [C]; one floating dtype. Throws Error where shapes do not fit or there is nothing to average.
/// Divided over the batch, every piece takes its own statistics: the split is approximate.
BatchNormalizationResult batch_normalization_training(Tensor x, Tensor scale, Tensor shift,
                                                      BatchNormalizationOptions options = {},
                                                      std::string_view name = "batch_normalization");

/// The same formula with given statistics, `mean` and `variance` [C], which are constants to the
/// gradient.
Tensor batch_normalization_inference(Tensor x, Tensor scale, Tensor shift, Tensor mean, Tensor variance,
                                     BatchNormalizationOptions options = {},
                                     std::string_view name = "batch_normalization");

class BatchNormalizationContract : public Contract {
 public:
  explicit BatchNormalizationContract(BatchNormalizationOptions options) : options_(options) {}
  const BatchNormalizationOptions& options() const { return options_; }

  std::string attributes() const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }

 protected:
  void check_epsilon() const;
  /// Of a gradient: what comes after mean and variance.
  void check_gradient_inputs(std::span<const TensorInfo> inputs) const;
  /// Throws unless there are as many inputs, and with `adds` one more, like x.
  void check_inputs(std::span<const TensorInfo> inputs, int count) const;
  /// The rule of the operator for one without `adds`: what is added is split like x.
  SplitRule with_summand(SplitRule rule, int dimension) const;
  /// The options of the gradient's operator: with `adds` it gets the gradient by the sum.
  BatchNormalizationOptions gradient_options() const {
    return {options_.epsilon, options_.relu && !options_.adds};
  }
  /// What that is: of a sum that was rectified, where it was above 0.
  Tensor gradient_by_sum(const GradientContext& context) const;
  /// A gradient's inputs, from those of the operator and its statistics.
  std::vector<Tensor> gradient_inputs(const GradientContext& context, Tensor output_gradient, Tensor mean,
                                      Tensor variance) const;
  BatchNormalizationOptions options_;
};

/// Inputs x, scale, shift and, with `adds`, what is added; outputs y, mean, variance.
class BatchNormalizationTraining final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_training"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override;
  LayoutRule layouts() const override { return {options_.adds ? 0b1001U : 1U, 1, false}; }
};

/// Inputs y's gradient, x, scale, mean, variance and, of a rectified y, shift; outputs the gradients by x,
/// scale, shift. Where y was rectified follows from x, by the same rounded arithmetic as y itself. Not
/// differentiable again.
class BatchNormalizationTrainingGradient final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_training_gradient"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override {
    return {{0, 0, Sharing::Kind::overwrite}, {1, 0, Sharing::Kind::overwrite}};
  }
  LayoutRule layouts() const override { return {3, 1, false}; }
};

/// Inputs x, scale, shift, mean, variance and, with `adds`, what is added; output y.
class BatchNormalizationInference final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_inference"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override;
  LayoutRule layouts() const override { return {options_.adds ? 0b100001U : 1U, 1, false}; }
};

/// Inputs y's gradient, x, scale, mean, variance and, of a rectified y, shift; outputs the gradients by x,
/// scale, shift. Not differentiable again.
class BatchNormalizationInferenceGradient final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_inference_gradient"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {3, 1, false}; }
};

}  // namespace purine::ops
