// What the contracts of many operators have in common.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/contract.h"

namespace purine::ops {

/// Throws unless there are exactly `count` inputs.
void check_input_count(std::string_view type, std::span<const TensorInfo> inputs, int count);
/// Throws unless the input is floating; `what` names it in the message.
void check_floating(std::string_view type, const TensorInfo& input, std::string_view what);
/// Throws unless both are equal in shape and dtype; the names are for the message.
void check_same(std::string_view type, const TensorInfo& left, std::string_view left_name,
                const TensorInfo& right, std::string_view right_name);
/// One rule for every dimension of `info`, splitting all inputs and outputs along it: element-wise operators
/// whose tensors all have one shape.
std::vector<SplitRule> split_every_dimension(const TensorInfo& info, int inputs, int outputs);
/// `operations_per_element` for every element of the outputs, and every input and output once through memory.
Cost elementwise_cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs,
                      double operations_per_element);

}  // namespace purine::ops
