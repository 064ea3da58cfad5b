// Arithmetic of one tensor, element by element. All take any floating tensor of any shape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/elementwise.h"

namespace purine::ops {

/// x * factor.
Tensor scale(Tensor x, double factor, std::string_view name = "scale");
/// x + offset.
Tensor shift(Tensor x, double offset, std::string_view name = "shift");
/// x * x.
Tensor square(Tensor x, std::string_view name = "square");
/// The square root; NaN below 0. Its gradient at 0 is infinite.
Tensor sqrt(Tensor x, std::string_view name = "sqrt");
/// e to the power of x.
Tensor exp(Tensor x, std::string_view name = "exp");
/// The natural logarithm; minus infinity at 0, NaN below.
Tensor log(Tensor x, std::string_view name = "log");

class Scale final : public Elementwise {
 public:
  explicit Scale(double factor) : Elementwise("scale", {"x"}, 1), factor_(factor) {}
  double factor() const { return factor_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double factor_;
};

class Shift final : public Elementwise {
 public:
  explicit Shift(double offset) : Elementwise("shift", {"x"}, 1), offset_(offset) {}
  double offset() const { return offset_; }
  std::string attributes() const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 private:
  double offset_;
};

class Square final : public Elementwise {
 public:
  Square() : Elementwise("square", {"x"}, 1) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Sqrt final : public Elementwise {
 public:
  Sqrt() : Elementwise("sqrt", {"x"}, 4) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Exp final : public Elementwise {
 public:
  Exp() : Elementwise("exp", {"x"}, 10) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Log final : public Elementwise {
 public:
  Log() : Elementwise("log", {"x"}, 10) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

}  // namespace purine::ops
