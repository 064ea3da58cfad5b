// Activation functions, element by element. All take any floating tensor of any shape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/elementwise.h"

namespace purine::ops {

/// x where x > 0, else slope * x; the gradient at 0 is `slope`. The slope is finite and at least 0.
Tensor leaky_relu(Tensor x, double slope = 0.01, std::string_view name = "leaky_relu");
/// 1 / (1 + exp(-x)).
Tensor sigmoid(Tensor x, std::string_view name = "sigmoid");
/// The hyperbolic tangent.
Tensor tanh(Tensor x, std::string_view name = "tanh");
/// Gaussian error linear unit (Hendrycks, Gimpel, "Gaussian error linear units", 2016): x times the normal
/// distribution function of x. `approximate`: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) instead.
Tensor gelu(Tensor x, bool approximate = false, std::string_view name = "gelu");

class LeakyRelu final : public Elementwise {
 public:
  /// Throws Error for a slope that is negative or not finite.
  explicit LeakyRelu(double slope);
  double slope() const { return slope_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double slope_;
};

/// `output_gradient` where `output` (leaky_relu's result) is above 0, else slope * output_gradient.
class LeakyReluGradient final : public Elementwise {
 public:
  explicit LeakyReluGradient(double slope)
      : Elementwise("leaky_relu_gradient", {"output gradient", "output"}, 1), slope_(slope) {}
  double slope() const { return slope_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double slope_;
};

class Sigmoid final : public Elementwise {
 public:
  Sigmoid() : Elementwise("sigmoid", {"x"}, 12) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

/// output_gradient * output * (1 - output), where `output` is sigmoid's result.
class SigmoidGradient final : public Elementwise {
 public:
  SigmoidGradient() : Elementwise("sigmoid_gradient", {"output gradient", "output"}, 3) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Tanh final : public Elementwise {
 public:
  Tanh() : Elementwise("tanh", {"x"}, 15) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

/// output_gradient * (1 - output^2), where `output` is tanh's result.
class TanhGradient final : public Elementwise {
 public:
  TanhGradient() : Elementwise("tanh_gradient", {"output gradient", "output"}, 3) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Gelu final : public Elementwise {
 public:
  explicit Gelu(bool approximate) : Elementwise("gelu", {"x"}, 25), approximate_(approximate) {}
  bool approximate() const { return approximate_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  bool approximate_;
};

/// output_gradient times gelu's derivative at `x`.
class GeluGradient final : public Elementwise {
 public:
  explicit GeluGradient(bool approximate)
      : Elementwise("gelu_gradient", {"output gradient", "x"}, 35), approximate_(approximate) {}
  bool approximate() const { return approximate_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  bool approximate_;
};

}  // namespace purine::ops
