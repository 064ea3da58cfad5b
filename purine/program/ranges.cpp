#include "purine/program/ranges.h"

#include <algorithm>
#include <array>
#include <span>

#include "purine/ops/check_finite.h"
#include "purine/ops/concat.h"

namespace purine::program {
namespace {

/// Dimensions of a rank-4 tensor that is channels last, from the outermost.
constexpr std::array<int, 4> channels_last_order = {0, 2, 3, 1};

/// Elements of one step along a dimension, if none but extents of 1 lie outside of it; otherwise 0.
std::int64_t elements_of_a_step(const Shape& shape, Layout layout, int axis) {
  std::int64_t outside = 1;
  std::int64_t inside = 1;
  bool is_inside = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int dimension =
        layout == Layout::channels_last ? channels_last_order[static_cast<std::size_t>(i)] : i;
    if (dimension == axis) {
      is_inside = true;
    } else {
      (is_inside ? inside : outside) *= shape[dimension];
    }
  }
  return outside == 1 ? inside : 0;
}

Layout layout_of(const LoweredOperator& op) {
  return op.output_layouts.empty() ? Layout::plain : op.output_layouts.front();
}

bool same_layouts(const LoweredOperator& op) {
  const Layout layout = layout_of(op);
  return std::all_of(op.input_layouts.begin(), op.input_layouts.end(),
                     [&](Layout other) { return other == layout; });
}

}  // namespace

std::vector<ByteRange> byte_ranges(const Lowered& lowered, const LoweredOperator& op) {
  std::vector<ByteRange> ranges;
  const auto* slice = dynamic_cast<const ops::Slice*>(op.contract.get());
  const auto* concat = dynamic_cast<const ops::Concat*>(op.contract.get());
  if ((slice == nullptr && concat == nullptr) || !same_layouts(op)) return ranges;
  const TensorInfo& whole = lowered.tensors[slice != nullptr ? op.inputs[0] : op.outputs[0]].info;
  const int axis = slice != nullptr ? slice->axis() : concat->axis();
  const std::int64_t step = elements_of_a_step(whole.shape, layout_of(op), axis);
  if (step == 0) return ranges;
  const auto bytes = [&](std::int64_t steps) {
    return static_cast<std::size_t>(steps * step) * size_of(whole.dtype);
  };
  if (slice != nullptr) return {{op.inputs[0], op.outputs[0], bytes(slice->begin())}};
  std::int64_t begin = 0;
  for (const std::uint32_t input : op.inputs) {
    ranges.push_back({op.outputs[0], input, bytes(begin)});
    begin += lowered.tensors[input].info.shape[axis];
  }
  return ranges;
}

bool passes_through(const LoweredOperator& op) {
  return dynamic_cast<const ops::CheckFinite*>(op.contract.get()) != nullptr;
}

std::uint32_t overwritten_slice(const Lowered& lowered, std::uint32_t current, const ByteRange& range) {
  const std::uint32_t index = lowered.tensors[range.part].producer;
  const LoweredOperator& op = lowered.operators[index];
  for (const Sharing& sharing : op.contract->sharing()) {
    if (sharing.kind != Sharing::Kind::overwrite ||
        op.outputs[static_cast<std::size_t>(sharing.output)] != range.part) {
      continue;
    }
    const std::uint32_t input = op.inputs[static_cast<std::size_t>(sharing.input)];
    const LoweredTensor& tensor = lowered.tensors[input];
    if (tensor.producer == none || tensor.consumers != std::vector<std::uint32_t>{index} ||
        std::count(op.inputs.begin(), op.inputs.end(), input) != 1) {
      continue;
    }
    const std::vector<ByteRange> slice = byte_ranges(lowered, lowered.operators[tensor.producer]);
    if (!slice.empty() && slice.front().whole == current && slice.front().part == input &&
        slice.front().offset == range.offset &&
        tensor.info.bytes() == lowered.tensors[range.part].info.bytes()) {
      return input;
    }
  }
  return none;
}

}  // namespace purine::program
