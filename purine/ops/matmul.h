// Matrix products: batched, transposed, summed; and the fully connected layer.
#pragma once

#include <string_view>

#include "purine/graph/graph.h"

namespace purine::ops {

struct MatmulOptions {
  bool transpose_a = false;  ///< a holds the transpose of the left factor, in its last two dimensions
  bool transpose_b = false;  ///< likewise for b
  bool sum_batch = false;    ///< the products of all batch elements are added up
};

/// Products of matrices, which lie in the last two dimensions; all dimensions before are the batch.
///
/// `a` is […, M, K] ([…, K, M] where transposed), `b` […, K, N] ([…, N, K]); the result is […, M, N]. Either
/// both have the same batch dimensions, or one of them has rank 2 and is used for every element of the
/// other's batch. With `sum_batch`, which needs the same batch dimensions of both, the result is [M, N], the
/// sum of all products. One floating dtype; throws Error where shapes do not fit.
Tensor matmul(Tensor a, Tensor b, MatmulOptions options = {}, std::string_view name = "matmul");

/// The fully connected layer: x W^T + bias. `x` is […, I] of rank 2 or more, `weight` [O, I], `bias` [O] or
/// an empty handle for none; the result is […, O]. One floating dtype; throws Error where shapes do not fit.
Tensor linear(Tensor x, Tensor weight, Tensor bias = {}, std::string_view name = "linear");

/// Inputs a and b; output the product. Its gradients are such products, to any order.
class Matmul final : public Contract {
 public:
  explicit Matmul(MatmulOptions options) : options_(options) {}
  const MatmulOptions& options() const { return options_; }

  std::string_view type() const override { return "matmul"; }
  std::string attributes() const override;
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }

 private:
  MatmulOptions options_;
};

/// Inputs x, weight and, where there is one, bias; output the result.
class Linear final : public Contract {
 public:
  /// With `adds_bias` false, a bias that is given is left out: of an operator divided over its input
  /// features, whose pieces' outputs are summed, only the first piece adds it.
  explicit Linear(bool adds_bias = true) : adds_bias_(adds_bias) {}
  bool adds_bias() const { return adds_bias_; }

  std::string_view type() const override { return "linear"; }
  std::string attributes() const override { return adds_bias_ ? "" : "adds_bias=false"; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<Tensor> gradient(const GradientContext& context) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule& rule, const Piece& piece,
                    std::span<const TensorInfo> whole_inputs) const override;
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }

 private:
  bool adds_bias_;
};

}  // namespace purine::ops
