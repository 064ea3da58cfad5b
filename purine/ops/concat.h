// Putting tensors together along a dimension, and taking them apart.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// The tensors one after the other along `axis` (negative: counted from the last). They agree in dtype (any)
/// and in all other extents.
Tensor concat(std::span<const Tensor> tensors, int axis, std::string_view name = "concat");
Tensor concat(std::initializer_list<Tensor> tensors, int axis, std::string_view name = "concat");
/// Elements [begin, end) of a dimension.
Tensor slice(Tensor x, int axis, std::int64_t begin, std::int64_t end, std::string_view name = "slice");
/// Slices of these sizes, which add up to the extent.
std::vector<Tensor> split(Tensor x, int axis, std::vector<std::int64_t> sizes,
                          std::string_view name = "split");

class Concat final : public Contract {
 public:
  explicit Concat(int axis) : axis_(axis) {}
  /// At least 0.
  int axis() const { return axis_; }
  std::string_view type() const override { return "concat"; }
  std::string attributes() const override;
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
  int axis_;
};

class Slice final : public Contract {
 public:
  Slice(int axis, std::int64_t begin, std::int64_t end) : axis_(axis), begin_(begin), end_(end) {}
  /// At least 0.
  int axis() const { return axis_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  std::string_view type() const override { return "slice"; }
  std::string attributes() const override;
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
  int axis_;
  std::int64_t begin_;
  std::int64_t end_;
};

}  // namespace purine::ops
