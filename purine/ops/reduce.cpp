#include "purine/ops/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "purine/ops/binary.h"
#include "purine/ops/cast.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"

namespace purine::ops {
namespace {

Reduction make_reduction(std::string_view type, std::vector<int> axes, bool keep_dimensions, int rank) {
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int& axis : axes) axis = normal_axis(type, axis, rank);
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end()) {
    throw Error(type, fmt::format("axis {} is given twice", *twice));
  }
  return {std::move(axes), keep_dimensions};
}

// Splitting a kept dimension splits the result; splitting a reduced one gives partial results.
std::vector<SplitRule> reduction_rules(const Reduction& reduction, const Shape& shape) {
  std::vector<SplitRule> rules;
  for (int i = 0; i < shape.rank(); ++i) {
    const int output = reduction.reduces(i) ? SplitRule::partial : reduction.position(i);
    rules.push_back({{i}, {output}, shape[i], false});
  }
  return rules;
}

Tensor mean_gradient(Tensor output_gradient, const Shape& shape, const Reduction& reduction,
                     std::int64_t divisor) {
  return output_gradient.graph()
      .add(std::make_shared<MeanGradient>(shape, reduction, divisor), {output_gradient})
      .output();
}

}  // namespace

Tensor sum(Tensor x, std::vector<int> axes, bool keep_dimensions, std::string_view name) {
  Reduction reduction = make_reduction("sum", std::move(axes), keep_dimensions, x.shape().rank());
  return x.graph().add(std::make_shared<Sum>(std::move(reduction)), {x}, name).output();
}

Tensor mean(Tensor x, std::vector<int> axes, bool keep_dimensions, std::string_view name) {
  Reduction reduction = make_reduction("mean", std::move(axes), keep_dimensions, x.shape().rank());
  return x.graph().add(std::make_shared<Mean>(std::move(reduction)), {x}, name).output();
}

Tensor sum_of_squares(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<SumOfSquares>(), {x}, name).output();
}

Tensor broadcast_to(Tensor x, Shape shape, std::string_view name) {
  return x.graph().add(std::make_shared<BroadcastTo>(shape), {x}, name).output();
}

Shape Reduction::reduced(std::string_view type, const Shape& shape) const {
  if (!axes.empty() && axes.back() >= shape.rank()) {
    throw Error(type, fmt::format("axis {} of {} does not exist", axes.back(), shape.text()));
  }
  std::vector<std::int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduces(i)) {
      extents.push_back(shape[i]);
    } else if (keep_dimensions) {
      extents.push_back(1);
    }
  }
  return Shape(extents);
}

Shape Reduction::kept(const Shape& shape) const {
  Shape kept = shape;
  for (const int axis : axes) kept.set(axis, 1);
  return kept;
}

bool Reduction::reduces(int axis) const {
  return std::binary_search(axes.begin(), axes.end(), axis);
}

int Reduction::position(int dimension) const {
  if (keep_dimensions) return dimension;
  if (reduces(dimension)) return -1;
  return dimension - static_cast<int>(std::lower_bound(axes.begin(), axes.end(), dimension) - axes.begin());
}

std::int64_t Reduction::count(const Shape& shape) const {
  std::int64_t count = 1;
  for (const int axis : axes) count *= shape[axis];
  return count;
}

std::string Reduction::text() const {
  return fmt::format("axes={} keep_dimensions={}", axes, keep_dimensions);
}

std::vector<TensorInfo> Sum::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {{reduction_.reduced(type(), inputs[0].shape), inputs[0].dtype}};
}

std::vector<Tensor> Sum::gradient(const GradientContext& context) const {
  const Shape& shape = context.input(0).shape();
  Tensor incoming = context.output_gradient(0);
  const Shape kept = reduction_.kept(shape);
  if (!(incoming.shape() == kept)) incoming = reshape(incoming, {kept.begin(), kept.end()});
  return {incoming.shape() == shape ? incoming : broadcast_to(incoming, shape)};
}

std::vector<SplitRule> Sum::split_rules(std::span<const TensorInfo> inputs) const {
  return reduction_rules(reduction_, inputs[0].shape);
}

Cost Sum::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string Mean::attributes() const {
  return reduction_.text() + divisor_text(divisor_);
}

std::vector<TensorInfo> Mean::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {{reduction_.reduced(type(), inputs[0].shape), inputs[0].dtype}};
}

std::vector<Tensor> Mean::gradient(const GradientContext& context) const {
  return {mean_gradient(context.output_gradient(0), context.input(0).shape(), reduction_, divisor_)};
}

std::vector<SplitRule> Mean::split_rules(std::span<const TensorInfo> inputs) const {
  return reduction_rules(reduction_, inputs[0].shape);
}

ContractPtr Mean::piece(const SplitRule& rule, const Piece& piece,
                        std::span<const TensorInfo> whole_inputs) const {
  if (rule.outputs[0] != SplitRule::partial) return self();
  return std::make_shared<Mean>(
      reduction_, piece_divisor(divisor_, reduction_.count(whole_inputs[0].shape), rule, piece));
}

Cost Mean::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 1);
  cost.operations += static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string MeanGradient::attributes() const {
  return "shape=" + shape_.text() + " " + reduction_.text() + divisor_text(divisor_);
}

std::vector<TensorInfo> MeanGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "output gradient");
  const TensorInfo expected{reduction_.reduced(type(), shape_), inputs[0].dtype};
  if (!(inputs[0] == expected)) {
    throw Error(type(), "output gradient is " + inputs[0].text() + ", " + expected.text() + " is needed");
  }
  return {{shape_, inputs[0].dtype}};
}

std::vector<Tensor> MeanGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {graph.add(std::make_shared<Mean>(reduction_, divisor_), {context.output_gradient(0)}).output()};
}

std::vector<SplitRule> MeanGradient::split_rules(std::span<const TensorInfo>) const {
  std::vector<SplitRule> rules;
  for (int i = 0; i < shape_.rank(); ++i) {
    const int input = reduction_.reduces(i) ? SplitRule::whole : reduction_.position(i);
    rules.push_back({{input}, {i}, shape_[i], false});
  }
  return rules;
}

ContractPtr MeanGradient::piece(const SplitRule& rule, const Piece& piece,
                                std::span<const TensorInfo>) const {
  const int dimension = rule.outputs[0];
  Shape shape = shape_;
  shape.set(dimension, piece_extent(shape_[dimension], rule, piece));
  std::int64_t divisor = divisor_;
  if (reduction_.reduces(dimension)) divisor = piece_divisor(divisor_, reduction_.count(shape_), rule, piece);
  return std::make_shared<MeanGradient>(shape, reduction_, divisor);
}

Cost MeanGradient::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

std::vector<TensorInfo> SumOfSquares::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  return {{{}, DType::f64}};
}

std::vector<Tensor> SumOfSquares::gradient(const GradientContext& context) const {
  Tensor incoming = context.output_gradient(0);
  const Tensor x = context.input(0);
  if (x.dtype() != DType::f64) incoming = cast(incoming, x.dtype());
  return {multiply(scale(x, 2), incoming)};
}

std::vector<SplitRule> SumOfSquares::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules = split_every_dimension(inputs[0], 1, 1);
  for (SplitRule& rule : rules) rule.outputs[0] = SplitRule::partial;
  return rules;
}

Cost SumOfSquares::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = 2 * static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::vector<TensorInfo> BroadcastTo::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  if (!(broadcast_shapes(type(), inputs[0].shape, shape_) == shape_)) {
    throw Error(type(), "x is " + inputs[0].text() + ", which cannot be repeated to " + shape_.text());
  }
  return {{shape_, inputs[0].dtype}};
}

std::vector<Tensor> BroadcastTo::gradient(const GradientContext& context) const {
  return {sum_to(context.output_gradient(0), context.input(0).shape())};
}

std::vector<SplitRule> BroadcastTo::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules;
  const int missing = shape_.rank() - inputs[0].shape.rank();
  for (int i = 0; i < shape_.rank(); ++i) {
    const bool repeated = i < missing || inputs[0].shape[i - missing] != shape_[i];
    rules.push_back({{repeated ? SplitRule::whole : i - missing}, {i}, shape_[i], false});
  }
  return rules;
}

ContractPtr BroadcastTo::piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const {
  const int dimension = rule.outputs[0];
  Shape shape = shape_;
  shape.set(dimension, piece_extent(shape_[dimension], rule, piece));
  return std::make_shared<BroadcastTo>(shape);
}

Cost BroadcastTo::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_reduce(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  struct Case {
    const char* name;
    Shape shape;
    Reduction reduction;
  };
  const std::vector<Case> cases = {
      {"all", {3, 5}, {{0, 1}, false}},
      {"all_keep", {2, 3, 4, 5}, {{0, 1, 2, 3}, true}},
      {"rows", {4, 5}, {{0}, false}},
      {"columns", {4, 5}, {{1}, false}},
      {"columns_keep", {4, 5}, {{1}, true}},
      {"per_channel", {2, 3, 4, 5}, {{0, 2, 3}, false}},
      {"per_channel_keep", {2, 3, 4, 5}, {{0, 2, 3}, true}},
      {"over_channels", {2, 3, 4, 5}, {{1}, true}},
      {"pixels", {2, 3, 4, 5}, {{2, 3}, false}},
      {"alternate", {3, 2, 4, 2, 3}, {{1, 3}, false}},
      {"nothing", {3, 2}, {{}, false}},
      {"scalar", {}, {{}, false}},
  };
  std::vector<Sample> sums;
  std::vector<Sample> means;
  std::vector<Sample> mean_gradients;
  for (const Case& entry : cases) {
    const Reduction reduction = entry.reduction;
    const Shape shape = entry.shape;
    sums.push_back(
        {entry.name, [=](DType) { return std::make_shared<Sum>(reduction); }, {input(shape)}, true, true});
    means.push_back(
        {entry.name, [=](DType) { return std::make_shared<Mean>(reduction); }, {input(shape)}, true, true});
    mean_gradients.push_back({entry.name,
                              [=](DType) { return std::make_shared<MeanGradient>(shape, reduction); },
                              {input(reduction.reduced("mean_gradient", shape))},
                              true,
                              true});
  }
  means.push_back({"divisor",
                   [](DType) {
                     return std::make_shared<Mean>(Reduction{{0}, false}, 7);
                   },
                   {input({4, 5})},
                   true,
                   true});
  mean_gradients.push_back({"divisor",
                            [](DType) {
                              return std::make_shared<MeanGradient>(Shape{4, 5}, Reduction{{0}, false}, 7);
                            },
                            {input({5})},
                            true,
                            true});
  registry.add("sum", sums);
  registry.add("mean", means);
  registry.add("mean_gradient", mean_gradients);
  registry.add(
      "sum_of_squares",
      {{"matrix", [](DType) { return std::make_shared<SumOfSquares>(); }, {input({4, 7})}, true, true},
       {"image", [](DType) { return std::make_shared<SumOfSquares>(); }, {input({2, 3, 4, 5})}, true, true}});
  const auto to = [](Shape shape) { return [shape](DType) { return std::make_shared<BroadcastTo>(shape); }; };
  registry.add("broadcast_to", {{"scalar", to({3, 4}), {input({})}, true, true},
                                {"row", to({3, 4}), {input({4})}, true, true},
                                {"column", to({3, 4}), {input({3, 1})}, true, true},
                                {"channels", to({2, 3, 4, 5}), {input({3, 1, 1})}, true, true},
                                {"image", to({2, 3, 4, 5}), {input({2, 3, 1, 1})}, true, true},
                                {"same", to({3, 4}), {input({3, 4})}, true, true},
                                {"alternate", to({2, 3, 2, 3, 2}), {input({3, 1, 3, 1})}, true, true}});
}

}  // namespace purine::ops
