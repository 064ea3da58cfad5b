// Local response normalisation across channels.
#pragma once

#include <cstdint>
#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

struct LocalResponseNormalizationOptions {
  std::int64_t size = 5;  ///< channels in a neighbourhood
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};

/// Divides by a power of the neighbouring channels' energy (Krizhevsky, Sutskever, Hinton, "ImageNet
/// classification with deep convolutional neural networks", 2012, section 3.3, with PyTorch's alpha / size):
///
///   y[n, c, …] = x[n, c, …] / (k + alpha / size * sum over d of x[n, d, …]^2)^beta
///
/// with d from c - size / 2 to c + (size - 1) / 2, as far as there are channels. `x` is floating, [N, C, …].
Tensor local_response_normalization(Tensor x, LocalResponseNormalizationOptions options = {},
                                    std::string_view name = "local_response_normalization");

class LocalResponseNormalizationContract : public Contract {
 public:
  explicit LocalResponseNormalizationContract(LocalResponseNormalizationOptions options)
      : options_(options) {}
  const LocalResponseNormalizationOptions& options() const { return options_; }

  std::string attributes() const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  void check(const TensorInfo& x) const;
  LocalResponseNormalizationOptions options_;
};

class LocalResponseNormalization final : public LocalResponseNormalizationContract {
 public:
  using LocalResponseNormalizationContract::LocalResponseNormalizationContract;
  std::string_view type() const override { return "local_response_normalization"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
};

/// Inputs the output's gradient and x; output the gradient by x. Not differentiable again.
class LocalResponseNormalizationGradient final : public LocalResponseNormalizationContract {
 public:
  using LocalResponseNormalizationContract::LocalResponseNormalizationContract;
  std::string_view type() const override { return "local_response_normalization_gradient"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
};

}  // namespace purine::ops
