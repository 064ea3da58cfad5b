// Arithmetic of two tensors with broadcasting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// a + b. All four broadcast as numpy does: shapes are aligned at their last dimension, and an extent of 1,
/// or a missing one, is repeated to the other's. Both have one dtype: floating, i32 or i64.
Tensor add(Tensor a, Tensor b, std::string_view name = "add");
/// a - b.
Tensor subtract(Tensor a, Tensor b, std::string_view name = "subtract");
/// a * b.
Tensor multiply(Tensor a, Tensor b, std::string_view name = "multiply");
/// a / b, floating only.
Tensor divide(Tensor a, Tensor b, std::string_view name = "divide");

/// The shape of two shapes broadcast against each other; throws Error(type, …) where they do not fit.
Shape broadcast_shapes(std::string_view type, const Shape& a, const Shape& b);
/// The sum over the dimensions along which a tensor of this shape was repeated to the shape of `x`: the
/// gradient of broadcasting. `x` itself where none was.
Tensor sum_to(Tensor x, const Shape& shape);

/// What the four have in common. The tensors may have any layout, also while they broadcast.
class Binary : public Contract {
 public:
  std::string_view type() const final { return type_; }
  std::string attributes() const final { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const final;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const final;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const final {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const final;
  /// Either input may be overwritten, if it has the output's shape.
  std::vector<Sharing> sharing() const final {
    return {{0, 0, Sharing::Kind::overwrite}, {1, 0, Sharing::Kind::overwrite}};
  }
  LayoutRule layouts() const final { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  Binary(std::string_view type, bool integers) : type_(type), integers_(integers) {}

 private:
  std::string_view type_;
  bool integers_;
};

class Add final : public Binary {
 public:
  Add() : Binary("add", true) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Subtract final : public Binary {
 public:
  Subtract() : Binary("subtract", true) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Multiply final : public Binary {
 public:
  Multiply() : Binary("multiply", true) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

class Divide final : public Binary {
 public:
  Divide() : Binary("divide", false) {}
  std::vector<Tensor> gradient(const GradientContext& context) const override;
};

}  // namespace purine::ops
