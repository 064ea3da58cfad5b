#include "purine/ops/reshape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor reshape(Tensor x, std::vector<std::int64_t> shape, std::string_view name) {
  const std::int64_t elements = x.shape().elements();
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent != -1) {
      known *= extent;
    } else if (open == nullptr) {
      open = &extent;
    } else {
      throw Error("reshape", fmt::format("{} holds -1 twice", shape)).at(x.path());
    }
  }
  if (open != nullptr) {
    if (known == 0 || elements % known != 0) {
      throw Error("reshape", fmt::format("x is {}, whose {} elements no extent for -1 makes fit {}",
                                         x.info().text(), elements, shape))
          .at(x.path());
    }
    *open = elements / known;
  }
  return x.graph().add(std::make_shared<Reshape>(Shape(shape)), {x}, name).output();
}

Tensor flatten(Tensor x, int first_axis, std::string_view name) {
  const Shape& shape = x.shape();
  first_axis = normal_axis("flatten", first_axis, shape.rank());
  std::vector<std::int64_t> extents(shape.begin(), shape.begin() + first_axis);
  extents.push_back(
      std::accumulate(shape.begin() + first_axis, shape.end(), std::int64_t{1}, std::multiplies<>()));
  return x.graph().add(std::make_shared<Reshape>(Shape(extents)), {x}, name).output();
}

Tensor transpose(Tensor x, std::vector<int> permutation, std::string_view name) {
  return x.graph().add(std::make_shared<Transpose>(std::move(permutation)), {x}, name).output();
}

std::vector<TensorInfo> Reshape::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  if (inputs[0].shape.elements() != shape_.elements()) {
    throw Error(type(), fmt::format("x is {} with {} elements, {} has {}", inputs[0].text(),
                                    inputs[0].shape.elements(), shape_.text(), shape_.elements()));
  }
  return {{shape_, inputs[0].dtype}};
}

std::vector<Tensor> Reshape::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<Reshape>(context.input(0).shape()), {context.output_gradient(0)}).output()};
}

std::vector<SplitRule> Reshape::split_rules(std::span<const TensorInfo> inputs) const {
  const Shape& input = inputs[0].shape;
  std::vector<SplitRule> rules;
  std::int64_t before_input = 1;
  for (int i = 0; i < input.rank(); ++i) {
    std::int64_t before_output = 1;
    for (int j = 0; j < shape_.rank(); ++j) {
      const std::int64_t units = std::gcd(input[i], shape_[j]);
      if (before_input == before_output && (units > 1 || (units == 1 && i == j && input[i] == shape_[j]))) {
        rules.push_back({{i}, {j}, units, false});
      }
      before_output *= shape_[j];
    }
    before_input *= input[i];
  }
  return rules;
}

ContractPtr Reshape::piece(const SplitRule& rule, const Piece& piece, std::span<const TensorInfo>) const {
  const int dimension = rule.outputs[0];
  Shape shape = shape_;
  shape.set(dimension, piece_extent(shape_[dimension], rule, piece));
  return std::make_shared<Reshape>(shape);
}

Cost Reshape::cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const {
  return {};
}

std::string Transpose::attributes() const {
  return fmt::format("permutation={}", permutation_);
}

std::vector<TensorInfo> Transpose::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  const int rank = inputs[0].shape.rank();
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  bool good = static_cast<int>(permutation_.size()) == rank;
  TensorInfo output = inputs[0];
  for (int i = 0; good && i < rank; ++i) {
    const int from = permutation_[static_cast<std::size_t>(i)];
    good = from >= 0 && from < rank && !seen[static_cast<std::size_t>(from)];
    if (!good) break;
    seen[static_cast<std::size_t>(from)] = true;
    output.shape.set(i, inputs[0].shape[from]);
  }
  if (!good) {
    throw Error(type(), fmt::format("{} is not a permutation of the dimensions of {}", permutation_,
                                    inputs[0].text()));
  }
  return {output};
}

std::vector<Tensor> Transpose::gradient(const GradientContext& context) const {
  std::vector<int> inverse(permutation_.size());
  for (std::size_t i = 0; i < permutation_.size(); ++i) {
    inverse[static_cast<std::size_t>(permutation_[i])] = static_cast<int>(i);
  }
  return {transpose(context.output_gradient(0), inverse)};
}

std::vector<SplitRule> Transpose::split_rules(std::span<const TensorInfo> inputs) const {
  std::vector<SplitRule> rules;
  for (std::size_t i = 0; i < permutation_.size(); ++i) {
    rules.push_back({{permutation_[i]}, {static_cast<int>(i)}, inputs[0].shape[permutation_[i]], false});
  }
  return rules;
}

Cost Transpose::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_reshape(Registry& registry) {
  const auto input = [](Shape shape) { return SampleInput{{shape, DType::f32}}; };
  const auto to = [](Shape shape) { return [shape](DType) { return std::make_shared<Reshape>(shape); }; };
  const SampleInput bytes{{{2, 6}, DType::u8}, {Values::Kind::integer, 256}, false};
  registry.add("reshape", {{"flatten", to({4, 30}), {input({4, 6, 5})}, true, true},
                           {"unflatten", to({4, 3, 2, 5}), {input({4, 30})}, true, true},
                           {"merge_first", to({12, 5}), {input({4, 3, 5})}, true, true},
                           {"regroup", to({6, 10}), {input({4, 15})}, true, true},
                           {"scalar", to({}), {input({1, 1})}, true, true},
                           {"bytes", to({3, 4}), {bytes}, false}});
  const auto permute = [](std::vector<int> permutation) {
    return [permutation](DType) { return std::make_shared<Transpose>(permutation); };
  };
  registry.add("transpose", {{"matrix", permute({1, 0}), {input({5, 7})}, true, true},
                             {"last_to_second", permute({0, 3, 1, 2}), {input({2, 3, 4, 5})}, true, true},
                             {"heads", permute({0, 2, 1, 3}), {input({2, 3, 4, 5})}, true, true},
                             {"reverse", permute({3, 2, 1, 0}), {input({2, 3, 4, 5})}, true, true},
                             {"same", permute({0, 1}), {input({3, 4})}, true, true},
                             {"scalar", permute({}), {input({})}, true, true},
                             {"bytes", permute({1, 0}), {bytes}, false}});
}

}  // namespace purine::ops
