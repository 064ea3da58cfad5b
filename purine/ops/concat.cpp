#include "purine/ops/concat.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/pad.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor concat(std::span<const Tensor> tensors, int axis, std::string_view name) {
  if (tensors.empty()) throw Error("concat", "takes at least one tensor, got none");
  axis = normal_axis("concat", axis, tensors[0].shape().rank());
  return tensors[0].graph().add(std::make_shared<Concat>(axis), tensors, name).output();
}

Tensor concat(std::initializer_list<Tensor> tensors, int axis, std::string_view name) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis, name);
}

Tensor slice(Tensor x, int axis, std::int64_t begin, std::int64_t end, std::string_view name) {
  axis = normal_axis("slice", axis, x.shape().rank());
  return x.graph().add(std::make_shared<Slice>(axis, begin, end), {x}, name).output();
}

std::vector<Tensor> split(Tensor x, int axis, std::vector<std::int64_t> sizes, std::string_view name) {
  axis = normal_axis("split", axis, x.shape().rank());
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  if (total != x.shape()[axis]) {
    throw Error("split", fmt::format("the sizes add up to {}, dimension {} of {} has {}", total, axis,
                                     x.info().text(), x.shape()[axis]))
        .at(x.path());
  }
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(x, axis, begin, begin + size, name));
    begin += size;
  }
  return parts;
}

std::string Concat::attributes() const {
  return fmt::format("axis={}", axis_);
}

std::vector<TensorInfo> Concat::infer(std::span<const TensorInfo> inputs) const {
  if (inputs.empty()) throw Error(type(), "takes at least one tensor, got none");
  TensorInfo output = inputs[0];
  if (axis_ >= output.shape.rank()) {
    throw Error(type(), fmt::format("axis {} of {} does not exist", axis_, output.text()));
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    bool fits = inputs[i].dtype == output.dtype && inputs[i].shape.rank() == output.shape.rank();
    for (int d = 0; fits && d < output.shape.rank(); ++d) {
      fits = d == axis_ || inputs[i].shape[d] == output.shape[d];
    }
    if (!fits) {
      throw Error(type(),
                  fmt::format("tensor {} is {}, tensor 0 is {}; they may differ in dimension {} alone", i,
                              inputs[i].text(), inputs[0].text(), axis_));
    }
    output.shape.set(axis_, output.shape[axis_] + inputs[i].shape[axis_]);
  }
  return {output};
}

std::vector<Tensor> Concat::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(static_cast<std::size_t>(context.op().input_count()));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::int64_t end = begin + context.input(static_cast<int>(i)).shape()[axis_];
    if (context.needs(static_cast<int>(i)))
      gradients[i] = slice(context.output_gradient(0), axis_, begin, end);
    begin = end;
  }
  return gradients;
}

std::vector<SplitRule> Concat::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], static_cast<int>(inputs.size()), 1);
  rules.erase(rules.begin() + axis_);
  return rules;
}

Cost Concat::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

std::string Slice::attributes() const {
  return fmt::format("axis={} begin={} end={}", axis_, begin_, end_);
}

std::vector<TensorInfo> Slice::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  TensorInfo output = inputs[0];
  if (axis_ >= output.shape.rank()) {
    throw Error(type(), fmt::format("axis {} of {} does not exist", axis_, output.text()));
  }
  if (begin_ < 0 || end_ < begin_ || end_ > output.shape[axis_]) {
    throw Error(type(),
                fmt::format("[{}, {}) is not within dimension {} of {}", begin_, end_, axis_, output.text()));
  }
  output.shape.set(axis_, end_ - begin_);
  return {output};
}

std::vector<Tensor> Slice::gradient(const GradientContext& context) const {
  const Shape& shape = context.input(0).shape();
  std::vector<std::int64_t> before(static_cast<std::size_t>(shape.rank()), 0);
  std::vector<std::int64_t> after = before;
  before[static_cast<std::size_t>(axis_)] = begin_;
  after[static_cast<std::size_t>(axis_)] = shape[axis_] - end_;
  return {pad(context.output_gradient(0), before, after)};
}

std::vector<SplitRule> Slice::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], 1, 1);
  rules.erase(rules.begin() + axis_);
  return rules;
}

Cost Slice::cost(std::span<const TensorInfo>, std::span<const TensorInfo> outputs) const {
  return {0, 2 * static_cast<double>(outputs[0].bytes())};
}

void register_concat(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto integers = [](Shape shape, DType dtype) {
    return SampleInput{{shape, dtype}, {Values::Kind::integer, 200}, false};
  };
  const auto along = [](int axis) { return [axis](DType) { return std::make_shared<Concat>(axis); }; };
  registry.add(
      "concat",
      {{"channels", along(1), {input({2, 3, 4, 5}), input({2, 1, 4, 5}), input({2, 4, 4, 5})}, true, true},
       {"rows", along(0), {input({2, 5}), input({3, 5})}, true, true},
       {"columns", along(1), {input({3, 2}), input({3, 4})}, true, true},
       {"height", along(2), {input({2, 3, 2, 4}), input({2, 3, 1, 4})}, true, true},
       {"one", along(0), {input({2, 3})}, true, true},
       {"labels", along(0), {integers({3}, DType::i64), integers({2}, DType::i64)}, false},
       {"bytes", along(1), {integers({2, 3, 2, 2}, DType::u8), integers({2, 2, 2, 2}, DType::u8)}, false}});
  const auto part = [](int axis, std::int64_t begin, std::int64_t end) {
    return [=](DType) { return std::make_shared<Slice>(axis, begin, end); };
  };
  registry.add("slice", {{"channels", part(1, 1, 3), {input({2, 4, 3, 2})}, true, true},
                         {"rows", part(0, 2, 5), {input({6, 3})}, true, true},
                         {"columns", part(1, 0, 2), {input({4, 5})}, true, true},
                         {"width", part(3, 1, 2), {input({2, 3, 2, 4})}, true, true},
                         {"labels", part(0, 1, 4), {integers({5}, DType::i32)}, false}});
}

}  // namespace purine::ops
