// Batch normalisation, in training and in inference.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

struct BatchNormalizationOptions {
  double epsilon = 1e-5;  ///< added to the variance
  bool relu = false;      ///< y is rectified, as if by ops::relu
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
  /// A gradient's inputs, from those of the operator and its statistics.
  std::vector<Tensor> gradient_inputs(const GradientContext& context, Tensor mean, Tensor variance) const;
  BatchNormalizationOptions options_;
};

/// Inputs x, scale, shift; outputs y, mean, variance.
class BatchNormalizationTraining final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_training"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {1, 1, false}; }
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

/// Inputs x, scale, shift, mean, variance; output y.
class BatchNormalizationInference final : public BatchNormalizationContract {
 public:
  using BatchNormalizationContract::BatchNormalizationContract;
  std::string_view type() const override { return "batch_normalization_inference"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {1, 1, false}; }
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
