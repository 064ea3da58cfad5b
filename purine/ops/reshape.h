// Other shapes of the same elements, and other orders of dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The elements of x, in row-major order, under another shape; one extent may be -1 and is what remains. Any
/// dtype.
Tensor reshape(Tensor x, std::vector<std::int64_t> shape, std::string_view name = "reshape");
/// All dimensions from `first_axis` on made one: [N, C, H, W] becomes [N, C * H * W].
Tensor flatten(Tensor x, int first_axis = 1, std::string_view name = "flatten");
/// Dimension i of the result is dimension permutation[i] of x. Any dtype.
Tensor transpose(Tensor x, std::vector<int> permutation, std::string_view name = "transpose");

/// The output is a view of the input. A dimension may be split where a dimension of the other shape begins at
/// the same element and holds a whole number of the same units: [4, 6, 5] to [4, 30] by 4 units of dimension
/// 0, or by 6 units of dimension 1, each one extent of the input and 5 of the output.
class Reshape final : public Contract {
 public:
  explicit Reshape(Shape shape) : shape_(shape) {}
  const Shape& shape() const { return shape_; }
  std::string_view type() const override { return "reshape"; }
  std::string attributes() const override { return "shape=" + shape_.text(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::view}}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  Shape shape_;
};

class Transpose final : public Contract {
 public:
  explicit Transpose(std::vector<int> permutation) : permutation_(std::move(permutation)) {}
  const std::vector<int>& permutation() const { return permutation_; }
  std::string_view type() const override { return "transpose"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {0, 0, false}; }

 private:
  std::vector<int> permutation_;
};

}  // namespace purine::ops
