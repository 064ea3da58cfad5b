// Floating numbers in two bytes, for the way between locations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::ops {

/// Formats of IEEE 754's layout: a sign, an exponent, and the leading bits of the fraction.
enum class NarrowFormat : std::uint8_t {
  f16,  ///< 5 bits of exponent, 10 of fraction: a relative error of 2^-11 from 2^-14 to 65504, infinity above
  bf16,  ///< 8 and 7: a relative error of 2^-8 over f32's range
};
/// `f16`, `bf16`.
std::string_view name_of(NarrowFormat format);

/// The elements of x, floating and of rank 1, as two bytes each, low byte first: u8 [2 n]. Rounded to the
/// nearest, to even on a tie. Not differentiable.
Tensor narrow(Tensor x, NarrowFormat format, std::string_view name = "narrow");
/// The numbers that narrow() has written, exactly, as f32 or f64 [n].
Tensor widen(Tensor bytes, NarrowFormat format, DType dtype, std::string_view name = "widen");

class Narrow final : public Contract {
 public:
  explicit Narrow(NarrowFormat format) : format_(format) {}
  NarrowFormat format() const { return format_; }
  std::string_view type() const override { return "narrow"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }

 private:
  NarrowFormat format_;
};

class Widen final : public Contract {
 public:
  Widen(NarrowFormat format, DType dtype) : format_(format), dtype_(dtype) {}
  NarrowFormat format() const { return format_; }
  std::string_view type() const override { return "widen"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }

 private:
  NarrowFormat format_;
  DType dtype_;
};

}  // namespace purine::ops
