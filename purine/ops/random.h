// Tensors of random values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/excerpt.h"

namespace purine::ops {

/// Floating values uniform in [low, high), new ones in each iteration. A value depends on the run's seed, the
/// operator, the iteration and the element's number alone; f64 has the same 24 random bits as f32.
Tensor random_uniform(Graph& graph, TensorInfo info, double low, double high,
                      std::string_view name = "random_uniform");
/// Floating values from a normal distribution, as above.
Tensor random_normal(Graph& graph, TensorInfo info, double mean, double deviation,
                     std::string_view name = "random_normal");
/// The same as initial values of variables.
ContractPtr make_random_uniform(TensorInfo info, double low, double high);
ContractPtr make_random_normal(TensorInfo info, double mean, double deviation);

/// What both have in common: the tensor, and where it lies in the whole one if it is a piece.
class RandomTensor : public Contract {
 public:
  const TensorInfo& info() const { return info_; }
  const std::optional<Excerpt>& excerpt() const { return excerpt_; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const final;
  std::vector<Tensor> gradient(const GradientContext&) const final { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const final;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const final;
  std::vector<Sharing> sharing() const final { return {}; }
  /// Plain only: elements are drawn in the order of their numbers.
  LayoutRule layouts() const final { return {0, 0, false}; }

 protected:
  RandomTensor(TensorInfo info, std::optional<Excerpt> excerpt) : info_(info), excerpt_(excerpt) {}
  std::string common_attributes() const;
  TensorInfo piece_info(const SplitRule& rule, const Piece& piece) const;

 private:
  TensorInfo info_;
  std::optional<Excerpt> excerpt_;
};

class RandomUniform final : public RandomTensor {
 public:
  /// Throws Error unless low <= high, both finite.
  RandomUniform(TensorInfo info, double low, double high, std::optional<Excerpt> excerpt = {});
  double low() const { return low_; }
  double high() const { return high_; }
  std::string_view type() const override { return "random_uniform"; }
  std::string attributes() const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;

 private:
  double low_;
  double high_;
};

class RandomNormal final : public RandomTensor {
 public:
  /// Throws Error unless deviation >= 0, both finite.
  RandomNormal(TensorInfo info, double mean, double deviation, std::optional<Excerpt> excerpt = {});
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }
  std::string_view type() const override { return "random_normal"; }
  std::string attributes() const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;

 private:
  double mean_;
  double deviation_;
};

}  // namespace purine::ops
