// Two-dimensional pooling and its gradients.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "purine/graph/graph.h"
#include "purine/ops/window.h"

namespace purine::ops {

struct Pool2dOptions {
  std::array<std::int64_t, 2> kernel{2, 2};         ///< height, width
  std::array<std::int64_t, 2> stride{2, 2};         ///< vertical, horizontal
  std::array<std::int64_t, 4> padding{0, 0, 0, 0};  ///< top, left, bottom, right; smaller than the kernel
  /// Also a last window that goes past the padded image, if it starts inside the image or the padding before
  /// it (PyTorch's rule).
  bool ceil_mode = false;
  /// Averages only: divide by the number of elements in the window including padding, else by that of the
  /// image's. What lies past the padding (`ceil_mode`) never counts.
  bool count_include_pad = true;

  bool operator==(const Pool2dOptions& other) const = default;

  Window vertical() const { return {kernel[0], stride[0], padding[0], padding[2], 1}; }
  Window horizontal() const { return {kernel[1], stride[1], padding[1], padding[3], 1}; }
  /// Of the maxima's indices: u8 where a window has at most 256 elements, else i32.
  DType index_dtype() const { return kernel[0] * kernel[1] <= 256 ? DType::u8 : DType::i32; }
};

/// The greatest element of every window over `x` [N, C, H, W], padding left out; a NaN in the window is the
/// greatest. The gradient goes to the first of equal maxima. Throws Error where there is no window.
Tensor max_pool2d(Tensor x, Pool2dOptions options = {}, std::string_view name = "max_pool2d");

/// The average of every window over `x` [N, C, H, W]. Throws Error where there is no window.
Tensor average_pool2d(Tensor x, Pool2dOptions options = {}, std::string_view name = "average_pool2d");

/// The average of every image of `x` [N, C, H, W]: [N, C, 1, 1].
Tensor global_average_pool2d(Tensor x, std::string_view name = "global_average_pool2d");

/// What the contracts of pooling have in common: batch and channels can be divided, every tensor may have
/// either layout.
class PoolContract : public Contract {
 public:
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  /// How many inputs and outputs the operator has.
  virtual std::array<int, 2> arity() const = 0;
};

class WindowPoolContract : public PoolContract {
 public:
  explicit WindowPoolContract(Pool2dOptions options) : options_(options) {}
  const Pool2dOptions& options() const { return options_; }
  std::string attributes() const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;

 protected:
  Shape pooled(const Shape& image) const;
  Pool2dOptions options_;
};

/// Input x; outputs the maxima and, for the gradient, which element of its window each is: row * kernel width
/// + column, u8 where the window has at most 256 elements, else i32.
class MaxPool2d final : public WindowPoolContract {
 public:
  using WindowPoolContract::WindowPoolContract;
  std::string_view type() const override { return "max_pool2d"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 protected:
  std::array<int, 2> arity() const override { return {1, 2}; }
};

/// Inputs the output's gradient and MaxPool2d's second output; output the gradient by x.
class MaxPool2dGradient final : public WindowPoolContract {
 public:
  /// `extents` are x's H and W.
  MaxPool2dGradient(Pool2dOptions options, std::array<std::int64_t, 2> extents)
      : WindowPoolContract(options), extents_(extents) {}
  std::string_view type() const override { return "max_pool2d_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 protected:
  std::array<int, 2> arity() const override { return {2, 1}; }

 private:
  std::array<std::int64_t, 2> extents_;
};

/// Inputs x and MaxPool2d's second output for some other tensor; output those elements of x: the gradient of
/// MaxPool2dGradient.
class MaxPool2dSelect final : public WindowPoolContract {
 public:
  using WindowPoolContract::WindowPoolContract;
  std::string_view type() const override { return "max_pool2d_select"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 protected:
  std::array<int, 2> arity() const override { return {2, 1}; }
};

class AveragePool2d final : public WindowPoolContract {
 public:
  using WindowPoolContract::WindowPoolContract;
  std::string_view type() const override { return "average_pool2d"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 protected:
  std::array<int, 2> arity() const override { return {1, 1}; }
};

/// Input the output's gradient; output the gradient by x.
class AveragePool2dGradient final : public WindowPoolContract {
 public:
  /// `extents` are x's H and W.
  AveragePool2dGradient(Pool2dOptions options, std::array<std::int64_t, 2> extents)
      : WindowPoolContract(options), extents_(extents) {}
  std::string_view type() const override { return "average_pool2d_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;

 protected:
  std::array<int, 2> arity() const override { return {1, 1}; }

 private:
  std::array<std::int64_t, 2> extents_;
};

class GlobalAveragePool2d final : public PoolContract {
 public:
  std::string_view type() const override { return "global_average_pool2d"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;

 protected:
  std::array<int, 2> arity() const override { return {1, 1}; }
};

/// Input the output's gradient [N, C, 1, 1]; output the gradient by x.
class GlobalAveragePool2dGradient final : public PoolContract {
 public:
  /// `extents` are x's H and W.
  explicit GlobalAveragePool2dGradient(std::array<std::int64_t, 2> extents) : extents_(extents) {}
  std::string_view type() const override { return "global_average_pool2d_gradient"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;

 protected:
  std::array<int, 2> arity() const override { return {1, 1}; }

 private:
  std::array<std::int64_t, 2> extents_;
};

}  // namespace purine::ops
