#include <algorithm>
#include <map>
#include <utility>

#include "purine/ops/reorder.h"
#include "purine/program/lowered.h"

namespace purine::program {
namespace {

bool flexible(std::uint32_t mask, std::size_t index) {
  return ((mask >> std::min<std::size_t>(index, 31)) & 1U) != 0;
}

bool has_layouts(const TensorInfo& info) {
  return info.shape.rank() == 4;
}

/// Both layouts are the same bytes: one channel, or one pixel.
bool layouts_coincide(const TensorInfo& info) {
  return info.shape[1] == 1 || info.shape[2] * info.shape[3] == 1;
}

class LayoutAssigner {
 public:
  LayoutAssigner(Graph& graph, Lowered& lowered) : graph_(graph), lowered_(lowered) {}

  void run() {
    Lowered result;
    result.tensors = lowered_.tensors;
    result.variables = lowered_.variables;
    result.places = lowered_.places;
    for (std::uint32_t i = 0; i < lowered_.operators.size(); ++i) {
      LoweredOperator op = lowered_.operators[i];
      const LayoutRule rule = op.contract->layouts();
      const Layout chosen = choose(result, op, rule);
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const bool free = flexible(rule.inputs, k) && has_layouts(result.tensors[op.inputs[k]].info);
        const Layout layout = free ? chosen : Layout::plain;
        op.inputs[k] = in_layout(result, op.inputs[k], layout);
        op.input_layouts.push_back(layout);
      }
      const auto index = static_cast<std::uint32_t>(result.operators.size());
      for (std::size_t k = 0; k < op.outputs.size(); ++k) {
        LoweredTensor& output = result.tensors[op.outputs[k]];
        output.producer = index;
        if (flexible(rule.outputs, k) && has_layouts(output.info)) output.layout = chosen;
        op.output_layouts.push_back(output.layout);
      }
      result.operators.push_back(std::move(op));
    }
    for (LoweredVariable& variable : result.variables) {
      // A variable's storage is plain, so its next value must be.
      if (variable.next == none) continue;
      const LoweredTensor& next = result.tensors[variable.next];
      PURINE_CHECK(next.layout == Layout::plain || layouts_coincide(next.info));
    }
    result.find_consumers();
    lowered_ = std::move(result);
  }

 private:
  /// What the operator prefers, else what suits most elements: inputs count for the layout they are in
  /// already, outputs for channels last where a reader prefers it.
  Layout choose(const Lowered& result, const LoweredOperator& op, const LayoutRule& rule) const {
    if (rule.prefers_channels_last) return Layout::channels_last;
    std::int64_t last = 0;
    std::int64_t plain = 0;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const LoweredTensor& input = result.tensors[op.inputs[k]];
      if (!flexible(rule.inputs, k) || !has_layouts(input.info)) continue;
      // Variables keep the plain layout, and so does what updates them.
      if (input.variable != none) return Layout::plain;
      if (layouts_coincide(input.info)) continue;
      (input.layout == Layout::channels_last ? last : plain) += input.info.shape.elements();
    }
    for (std::size_t k = 0; k < op.outputs.size(); ++k) {
      const LoweredTensor& output = lowered_.tensors[op.outputs[k]];
      if (!flexible(rule.outputs, k) || !has_layouts(output.info) || layouts_coincide(output.info)) continue;
      if (read_in_channels_last(output)) last += output.info.shape.elements();
    }
    return last > plain ? Layout::channels_last : Layout::plain;
  }

  bool read_in_channels_last(const LoweredTensor& output) const {
    return std::any_of(output.consumers.begin(), output.consumers.end(), [&](std::uint32_t reader) {
      return lowered_.operators[reader].contract->layouts().prefers_channels_last;
    });
  }

  std::uint32_t in_layout(Lowered& result, std::uint32_t tensor, Layout layout) {
    if (result.tensors[tensor].layout == layout || layouts_coincide(result.tensors[tensor].info))
      return tensor;
    const auto [entry, inserted] = copies_.try_emplace({tensor, layout}, none);
    if (!inserted) return entry->second;
    const LoweredTensor source = result.tensors[tensor];
    const std::uint32_t copy = static_cast<std::uint32_t>(result.tensors.size());
    const auto op = static_cast<std::uint32_t>(result.operators.size());
    const char* suffix = layout == Layout::channels_last ? "/to_channels_last" : "/to_plain";
    LoweredTensor reordered;
    reordered.info = source.info;
    reordered.layout = layout;
    reordered.place = source.place;
    reordered.producer = op;
    reordered.origin = source.origin;
    result.tensors.push_back(std::move(reordered));
    LoweredOperator reorder;
    reorder.contract = std::make_shared<ops::Reorder>(layout);
    reorder.inputs = {tensor};
    reorder.outputs = {copy};
    reorder.input_layouts = {source.layout};
    reorder.output_layouts = {layout};
    reorder.added_path = graph_.tensor(source.origin).path() + suffix;
    reorder.place = source.place;
    result.operators.push_back(std::move(reorder));
    entry->second = copy;
    return copy;
  }

  Graph& graph_;
  Lowered& lowered_;
  std::map<std::pair<std::uint32_t, Layout>, std::uint32_t> copies_;
};

}  // namespace

void assign_layouts(Graph& graph, Lowered& lowered, bool channels_last) {
  if (channels_last) {
    LayoutAssigner(graph, lowered).run();
    return;
  }
  for (LoweredOperator& op : lowered.operators) {
    op.input_layouts.assign(op.inputs.size(), Layout::plain);
    op.output_layouts.assign(op.outputs.size(), Layout::plain);
  }
}

}  // namespace purine::program
