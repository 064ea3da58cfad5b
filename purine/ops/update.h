// The steps of the optimisers: each one operator that reads and writes every tensor once, in place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

struct SgdOptions {
  double weight_decay = 0;
};
/// The weight minus learning_rate * (gradient + weight_decay * weight). `learning_rate` is an f32 scalar, or
/// of the weight's dtype. No update has a gradient.
Tensor sgd_update(Tensor weight, Tensor gradient, Tensor learning_rate, SgdOptions options = {},
                  std::string_view name = "sgd_update");

struct MomentumOptions {
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
};
struct MomentumResult {
  Tensor weight;
  Tensor velocity;
};
/// With d = gradient + weight_decay * weight and v = momentum * velocity + d, the weight minus learning_rate
/// * v, or with `nesterov` minus learning_rate * (d + momentum * v); as PyTorch's SGD without dampening
/// (Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013).
MomentumResult momentum_update(Tensor weight, Tensor velocity, Tensor gradient, Tensor learning_rate,
                               MomentumOptions options = {}, std::string_view name = "momentum_update");

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  ///< AdamW: the decay shrinks the weight, not added to the gradient
};
struct AdamResult {
  Tensor weight;
  Tensor first_moment;
  Tensor second_moment;
};
/// One step of Adam (Kingma, Ba, 2014), or with `decoupled` of AdamW (Loshchilov, Hutter, 2017), as PyTorch
/// computes them: with t = iteration + 1 the moments are divided by 1 - beta^t, and epsilon is added to the
/// root of the corrected second one. `iteration` is an i64 scalar.
AdamResult adam_update(Tensor weight, Tensor first_moment, Tensor second_moment, Tensor gradient,
                       Tensor learning_rate, Tensor iteration, AdamOptions options = {},
                       std::string_view name = "adam_update");

/// What the updates have in common: `states` tensors (the weight first) that are overwritten, the gradient of
/// the same info, the learning rate, and further scalars. Every dimension may be split.
class Update : public Contract {
 public:
  std::string_view type() const final { return type_; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const final;
  std::vector<Tensor> gradient(const GradientContext&) const final { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const final;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const final {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const final;
  std::vector<Sharing> sharing() const final;
  LayoutRule layouts() const final { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  Update(std::string_view type, std::vector<std::string_view> states, bool iteration,
         double operations_per_element)
      : type_(type),
        states_(std::move(states)),
        iteration_(iteration),
        operations_per_element_(operations_per_element) {}

 private:
  std::string_view type_;
  std::vector<std::string_view> states_;
  bool iteration_;
  double operations_per_element_;
};

/// Inputs: weight, gradient, learning rate. Output: weight.
class SgdUpdate final : public Update {
 public:
  explicit SgdUpdate(SgdOptions options) : Update("sgd_update", {"weight"}, false, 4), options_(options) {}
  const SgdOptions& options() const { return options_; }
  std::string attributes() const override;

 private:
  SgdOptions options_;
};

/// Inputs: weight, velocity, gradient, learning rate. Outputs: weight, velocity.
class MomentumUpdate final : public Update {
 public:
  explicit MomentumUpdate(MomentumOptions options)
      : Update("momentum_update", {"weight", "velocity"}, false, 8), options_(options) {}
  const MomentumOptions& options() const { return options_; }
  std::string attributes() const override;

 private:
  MomentumOptions options_;
};

/// Inputs: weight, first moment, second moment, gradient, learning rate, iteration. Outputs: weight, moments.
class AdamUpdate final : public Update {
 public:
  explicit AdamUpdate(AdamOptions options)
      : Update("adam_update", {"weight", "first moment", "second moment"}, true, 16), options_(options) {}
  const AdamOptions& options() const { return options_; }
  std::string attributes() const override;

 private:
  AdamOptions options_;
};

}  // namespace purine::ops
