// Where the host's values enter a program, and where it reads them.
#pragma once

#include "purine/graph/contract.h"

namespace purine {

/// Produces the tensor of a graph input: its kernel asks the host for the iteration's value.
class HostInput final : public Contract {
 public:
  explicit HostInput(TensorInfo info) : info_(info) {}
  std::string_view type() const override { return "host_input"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override { return {info_}; }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override {
    return {0, static_cast<double>(info_.bytes())};
  }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool brings_samples() const override { return true; }

 private:
  TensorInfo info_;
};

/// Reads a watched tensor: its kernel hands the iteration's value to the host.
class HostRead final : public Contract {
 public:
  std::string_view type() const override { return "host_read"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override { return {}; }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo>) const override {
    return {0, static_cast<double>(inputs[0].bytes())};
  }
  std::vector<Sharing> sharing() const override { return {}; }
  LayoutRule layouts() const override { return {}; }
  bool has_side_effect() const override { return true; }
};

}  // namespace purine
