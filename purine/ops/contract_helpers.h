// What the contracts of many operators have in common.
#pragma once

#include <cstdint>
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
/// Throws unless the input is floating and of rank 4, [N, C, H, W].
void check_image(std::string_view type, const TensorInfo& input, std::string_view what);
/// Throws unless both are equal in shape and dtype; the names are for the message.
void check_same(std::string_view type, const TensorInfo& left, std::string_view left_name,
                const TensorInfo& right, std::string_view right_name);
/// Throws unless both have one dtype.
void check_same_dtype(std::string_view type, const TensorInfo& left, std::string_view left_name,
                      const TensorInfo& right, std::string_view right_name);
/// One rule for every dimension of `info`, splitting all inputs and outputs along it: element-wise operators
/// whose tensors all have one shape.
std::vector<SplitRule> split_every_dimension(const TensorInfo& info, int inputs, int outputs);
/// `axis` counted from the first dimension; a negative one is counted from the last. One that does not exist
/// throws.
int normal_axis(std::string_view type, int axis, int rank);
/// The extent of one piece of a tensor that is split by `rule` along a dimension of this extent.
std::int64_t piece_extent(std::int64_t extent, const SplitRule& rule, const Piece& piece);
/// The divisor of one piece of an operator that divides a sum by a count, where 0 stands for its own `count`:
/// a piece divides by the whole's count. A piece that is all of the whole, of whatever size, keeps 0; a
/// divisor that is set already stays, since a piece's piece adds up to the same whole.
std::int64_t piece_divisor(std::int64_t divisor, std::int64_t count, const SplitRule& rule,
                           const Piece& piece);
/// ` divisor=12`, or nothing for 0: for attribute texts.
std::string divisor_text(std::int64_t divisor);
/// `operations_per_element` for every element of the outputs, and every input and output once through memory.
Cost elementwise_cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs,
                      double operations_per_element);

}  // namespace purine::ops
