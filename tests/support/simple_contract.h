// Contracts for tests of graphs: an operator of any type whose outputs are told beforehand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::test {

struct SimpleOptions {
  std::string attributes = {};
  std::vector<SplitRule> rules = {};
  bool piece_adapts = true;  ///< otherwise a piece has the whole's outputs, against its rule
  bool brings_samples = false;
  bool crosses_locations = false;
};

class SimpleContract final : public Contract {
 public:
  SimpleContract(std::string type, std::vector<TensorInfo> outputs, SimpleOptions options = {})
      : type_(std::move(type)), outputs_(std::move(outputs)), options_(std::move(options)) {}

  std::string_view type() const override { return type_; }
  std::string attributes() const override { return options_.attributes; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override { return outputs_; }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return options_.rules; }
  /// The outputs that the rule splits get the extents of the piece.
  ContractPtr piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const override {
    if (!options_.piece_adapts) return self();
    std::vector<TensorInfo> outputs = outputs_;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int dimension = rule.outputs[i];
      if (dimension < 0) continue;
      const std::int64_t per_unit = outputs[i].shape[dimension] / rule.units;
      outputs[i].shape.set(dimension, per_unit * (piece.end - piece.begin));
    }
    return std::make_shared<SimpleContract>(type_, std::move(outputs), options_);
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override { return {}; }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool brings_samples() const override { return options_.brings_samples; }
  bool crosses_locations() const override { return options_.crosses_locations; }

  /// Makes the contract infer something else than when its operator was added.
  void infer_from_now_on(std::vector<TensorInfo> outputs) { outputs_ = std::move(outputs); }

 private:
  std::string type_;
  std::vector<TensorInfo> outputs_;
  SimpleOptions options_;
};

inline std::shared_ptr<SimpleContract> simple(std::string type, std::vector<TensorInfo> outputs,
                                              SimpleOptions options = {}) {
  return std::make_shared<SimpleContract>(std::move(type), std::move(outputs), std::move(options));
}

}  // namespace purine::test
