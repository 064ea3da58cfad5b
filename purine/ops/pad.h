// Padding with a constant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// x with `before` and `after` elements of `value` added at the ends of each dimension: one number a
/// dimension, none negative. Any dtype.
Tensor pad(Tensor x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value = 0,
           std::string_view name = "pad");

class Pad final : public Contract {
 public:
  Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value)
      : before_(std::move(before)), after_(std::move(after)), value_(value) {}
  const std::vector<std::int64_t>& before() const { return before_; }
  const std::vector<std::int64_t>& after() const { return after_; }
  double value() const { return value_; }
  std::string_view type() const override { return "pad"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  /// Dimensions that are not padded may be split.
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 private:
  std::vector<std::int64_t> before_;
  std::vector<std::int64_t> after_;
  double value_;
};

}  // namespace purine::ops
