#include "purine/ops/contract_helpers.h"

#include "purine/core/error.h"

namespace purine::ops {

void check_input_count(std::string_view type, std::span<const TensorInfo> inputs, int count) {
  if (inputs.size() != static_cast<std::size_t>(count)) {
    throw Error(type, "takes " + std::to_string(count) + " inputs, got " + std::to_string(inputs.size()));
  }
}

void check_floating(std::string_view type, const TensorInfo& input, std::string_view what) {
  if (!is_floating(input.dtype)) {
    throw Error(type, std::string(what) + " is " + input.text() + ", a floating tensor is needed",
                "convert it: ops::cast(x, DType::f32)");
  }
}

void check_image(std::string_view type, const TensorInfo& input, std::string_view what) {
  check_floating(type, input, what);
  if (input.shape.rank() != 4) {
    throw Error(type, std::string(what) + " is " + input.text() + ", rank 4 is needed",
                "images are [N, C, H, W]");
  }
}

void check_same(std::string_view type, const TensorInfo& left, std::string_view left_name,
                const TensorInfo& right, std::string_view right_name) {
  if (!(left == right)) {
    throw Error(type, std::string(left_name) + " is " + left.text() + ", " + std::string(right_name) +
                          " is " + right.text() + "; they must be the same");
  }
}

void check_same_dtype(std::string_view type, const TensorInfo& left, std::string_view left_name,
                      const TensorInfo& right, std::string_view right_name) {
  if (left.dtype != right.dtype) {
    throw Error(type, std::string(left_name) + " is " + left.text() + ", " + std::string(right_name) +
                          " is " + right.text() + "; they must have one dtype");
  }
}

std::vector<SplitRule> split_every_dimension(const TensorInfo& info, int inputs, int outputs) {
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < info.shape.rank(); ++dimension) {
    rules.push_back({std::vector<int>(static_cast<std::size_t>(inputs), dimension),
                     std::vector<int>(static_cast<std::size_t>(outputs), dimension), info.shape[dimension],
                     false});
  }
  return rules;
}

int normal_axis(std::string_view type, int axis, int rank) {
  if (axis < -rank || axis >= rank) {
    throw Error(type, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank) +
                          " does not exist");
  }
  return axis < 0 ? axis + rank : axis;
}

std::int64_t piece_extent(std::int64_t extent, const SplitRule& rule, const Piece& piece) {
  const std::int64_t per_unit = rule.units == 0 ? 1 : extent / rule.units;
  return per_unit * (piece.end - piece.begin);
}

std::int64_t piece_divisor(std::int64_t divisor, std::int64_t count, const SplitRule& rule,
                           const Piece& piece) {
  if (divisor != 0) return divisor;
  if (piece.begin == 0 && piece.end == piece.units) return 0;
  return count / rule.units * piece.units;
}

std::string divisor_text(std::int64_t divisor) {
  return divisor == 0 ? std::string() : " divisor=" + std::to_string(divisor);
}

Cost elementwise_cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs,
                      double operations_per_element) {
  Cost cost;
  for (const TensorInfo& input : inputs) cost.bytes += static_cast<double>(input.bytes());
  for (const TensorInfo& output : outputs) {
    cost.bytes += static_cast<double>(output.bytes());
    cost.operations += operations_per_element * static_cast<double>(output.shape.elements());
  }
  return cost;
}

}  // namespace purine::ops
