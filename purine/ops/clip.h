// Limits of values, and the norm that gradients are limited by.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/elementwise.h"

namespace purine::ops {

/// Each element moved into [low, high]; NaN stays. The gradient flows where low <= x <= high.
Tensor clip(Tensor x, double low, double high, std::string_view name = "clip");
/// The square root of the sum of the squares of all elements of all tensors: a scalar of the dtype of the
/// first, at its location. Accumulated in f64, one partial sum a tensor, at its own location, which are added
/// in their order.
Tensor global_norm(std::span<const Tensor> tensors, std::string_view name = "global_norm");
Tensor global_norm(std::initializer_list<Tensor> tensors, std::string_view name = "global_norm");

class Clip final : public Elementwise {
 public:
  /// Throws Error unless low <= high.
  Clip(double low, double high);
  double low() const { return low_; }
  double high() const { return high_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double low_;
  double high_;
};

/// output_gradient where low <= x <= high, else 0. Inputs: output gradient, x.
class ClipGradient final : public Elementwise {
 public:
  ClipGradient(double low, double high)
      : Elementwise("clip_gradient", {"output gradient", "x"}, 2), low_(low), high_(high) {}
  double low() const { return low_; }
  double high() const { return high_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double low_;
  double high_;
};

}  // namespace purine::ops
