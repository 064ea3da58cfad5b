// What element-by-element operators have in common.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/contract.h"

namespace purine::ops {

/// The contract of operators with one output whose tensors all have the same shape and dtype and which work
/// element by element: any dimension may be split, any layout will do, and the output may overwrite the first
/// input. What is left to say is the gradient, and the attributes where there are any.
class Elementwise : public Contract {
 public:
  std::string_view type() const final { return type_; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override;
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override;
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override;
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }

 protected:
  /// `input_names` are for messages, one an input; the texts must outlive the contract.
  Elementwise(std::string_view type, std::initializer_list<std::string_view> input_names,
              double operations_per_element)
      : type_(type), input_names_(input_names), operations_per_element_(operations_per_element) {}

 private:
  std::string_view type_;
  std::vector<std::string_view> input_names_;
  double operations_per_element_;
};

}  // namespace purine::ops
