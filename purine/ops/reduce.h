// Sums and means over axes, and the repetition that is their gradient.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The sum over axes (negative: counted from the last; none given: over all). The axes disappear, or stay
/// with extent 1 if `keep_dimensions`. f32 is accumulated in f64.
Tensor sum(Tensor x, std::vector<int> axes = {}, bool keep_dimensions = false, std::string_view name = "sum");
/// The mean over axes; arguments as of `sum`.
Tensor mean(Tensor x, std::vector<int> axes = {}, bool keep_dimensions = false,
            std::string_view name = "mean");
/// The sum of the squares of all elements, a scalar of dtype f64 whatever the dtype of x.
Tensor sum_of_squares(Tensor x, std::string_view name = "sum_of_squares");
/// x repeated to `shape` by numpy's rule: aligned at the last dimension, where x has extent 1 or none.
Tensor broadcast_to(Tensor x, Shape shape, std::string_view name = "broadcast_to");

/// Over which axes a tensor is reduced, and whether they stay with extent 1.
struct Reduction {
  std::vector<int> axes;  ///< ascending, each once; none: nothing is reduced
  bool keep_dimensions = false;

  /// Throws Error(type, …) unless all axes exist in `shape`.
  Shape reduced(std::string_view type, const Shape& shape) const;
  /// The shape with the reduced axes at extent 1.
  Shape kept(const Shape& shape) const;
  bool reduces(int axis) const;
  /// The dimension of the reduced tensor in which a dimension of the whole one ends up; -1 if it disappears.
  int position(int dimension) const;
  /// Elements that are summed into one.
  std::int64_t count(const Shape& shape) const;
  std::string text() const;
};

class Sum final : public Contract {
 public:
  explicit Sum(Reduction reduction) : reduction_(std::move(reduction)) {}
  const Reduction& reduction() const { return reduction_; }
  std::string_view type() const override { return "sum"; }
  std::string attributes() const override { return reduction_.text(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  Reduction reduction_;
};

/// The sum divided by `divisor`; 0 stands for the number of elements that are summed into one. A piece of a
/// mean divides by the whole's number, so that the pieces' results add up to the mean.
class Mean final : public Contract {
 public:
  explicit Mean(Reduction reduction, std::int64_t divisor = 0)
      : reduction_(std::move(reduction)), divisor_(divisor) {}
  const Reduction& reduction() const { return reduction_; }
  std::int64_t divisor() const { return divisor_; }
  std::string_view type() const override { return "mean"; }
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
  Reduction reduction_;
  std::int64_t divisor_;
};

/// The gradient of a mean: `output_gradient`, which has the reduced shape, repeated to `shape` and divided by
/// `divisor` (0: the number of elements that were summed into one).
class MeanGradient final : public Contract {
 public:
  MeanGradient(Shape shape, Reduction reduction, std::int64_t divisor = 0)
      : shape_(shape), reduction_(std::move(reduction)), divisor_(divisor) {}
  const Shape& shape() const { return shape_; }
  const Reduction& reduction() const { return reduction_; }
  std::int64_t divisor() const { return divisor_; }
  std::string_view type() const override { return "mean_gradient"; }
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
  Shape shape_;
  Reduction reduction_;
  std::int64_t divisor_;
};

class SumOfSquares final : public Contract {
 public:
  std::string_view type() const override { return "sum_of_squares"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
};

class BroadcastTo final : public Contract {
 public:
  explicit BroadcastTo(Shape shape) : shape_(shape) {}
  const Shape& shape() const { return shape_; }
  std::string_view type() const override { return "broadcast_to"; }
  std::string attributes() const override { return "shape=" + shape_.text(); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  Shape shape_;
};

}  // namespace purine::ops
