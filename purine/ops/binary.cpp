#include "purine/ops/binary.h"

#include <algorithm>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"

namespace purine::ops {
namespace {

// The dimension of an input that lies under dimension `dimension` of the output, or SplitRule::whole where
// the input is repeated along it.
int aligned_dimension(const Shape& input, const Shape& output, int dimension) {
  const int own = dimension - (output.rank() - input.rank());
  if (own < 0 || input[own] != output[dimension]) return SplitRule::whole;
  return own;
}

}  // namespace

Tensor add(Tensor a, Tensor b, std::string_view name) {
  return a.graph().add(std::make_shared<Add>(), {a, b}, name).output();
}

Tensor subtract(Tensor a, Tensor b, std::string_view name) {
  return a.graph().add(std::make_shared<Subtract>(), {a, b}, name).output();
}

Tensor multiply(Tensor a, Tensor b, std::string_view name) {
  return a.graph().add(std::make_shared<Multiply>(), {a, b}, name).output();
}

Tensor divide(Tensor a, Tensor b, std::string_view name) {
  return a.graph().add(std::make_shared<Divide>(), {a, b}, name).output();
}

Shape broadcast_shapes(std::string_view type, const Shape& a, const Shape& b) {
  Shape output = a.rank() >= b.rank() ? a : b;
  for (int i = 1; i <= output.rank(); ++i) {
    const std::int64_t from_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t from_b = i <= b.rank() ? b[b.rank() - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      throw Error(type,
                  "shapes " + a.text() + " and " + b.text() + " do not broadcast: " + std::to_string(from_a) +
                      " against " + std::to_string(from_b),
                  "extents aligned at the last dimension must be equal, or one of them 1");
    }
    output.set(output.rank() - i, from_a == 1 ? from_b : from_a);
  }
  return output;
}

Tensor sum_to(Tensor x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int missing = x.shape().rank() - shape.rank();
  std::vector<int> axes;
  bool inside = false;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i >= missing && shape[i - missing] == x.shape()[i]) continue;
    axes.push_back(i);
    inside = inside || i >= missing;
  }
  Tensor result = axes.empty() ? x : sum(x, axes, inside);
  if (!(result.shape() == shape)) {
    result = reshape(result, std::vector<std::int64_t>(shape.begin(), shape.end()));
  }
  return result;
}

std::vector<TensorInfo> Binary::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type_, inputs, 2);
  if (inputs[0].dtype != inputs[1].dtype) {
    throw Error(type_,
                "a is " + inputs[0].text() + ", b is " + inputs[1].text() + "; the dtypes must be the same",
                "convert one: ops::cast(x, dtype)");
  }
  const DType dtype = inputs[0].dtype;
  if (!is_floating(dtype) && (!integers_ || dtype == DType::u8)) {
    throw Error(
        type_,
        "a is " + inputs[0].text() +
            (integers_ ? ", a floating, i32 or i64 tensor is needed" : ", a floating tensor is needed"),
        "convert it: ops::cast(x, DType::f32)");
  }
  return {{broadcast_shapes(type_, inputs[0].shape, inputs[1].shape), dtype}};
}

std::vector<SplitRule> Binary::split_rules(std::span<const TensorInfo> inputs) const {
  const Shape output = broadcast_shapes(type_, inputs[0].shape, inputs[1].shape);
  std::vector<SplitRule> rules;
  for (int i = 0; i < output.rank(); ++i) {
    rules.push_back(
        {{aligned_dimension(inputs[0].shape, output, i), aligned_dimension(inputs[1].shape, output, i)},
         {i},
         output[i],
         false});
  }
  return rules;
}

Cost Binary::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

std::vector<Tensor> Add::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(2);
  for (int i = 0; i < 2; ++i) {
    if (context.needs(i)) gradients[i] = sum_to(context.output_gradient(0), context.input(i).shape());
  }
  return gradients;
}

std::vector<Tensor> Subtract::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(2);
  const Tensor incoming = context.output_gradient(0);
  if (context.needs(0)) gradients[0] = sum_to(incoming, context.input(0).shape());
  if (context.needs(1)) gradients[1] = scale(sum_to(incoming, context.input(1).shape()), -1);
  return gradients;
}

std::vector<Tensor> Multiply::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(2);
  for (int i = 0; i < 2; ++i) {
    if (!context.needs(i)) continue;
    gradients[i] =
        sum_to(multiply(context.output_gradient(0), context.input(1 - i)), context.input(i).shape());
  }
  return gradients;
}

std::vector<Tensor> Divide::gradient(const GradientContext& context) const {
  std::vector<Tensor> gradients(2);
  const Tensor by_a = divide(context.output_gradient(0), context.input(1));
  if (context.needs(0)) gradients[0] = sum_to(by_a, context.input(0).shape());
  if (context.needs(1)) {
    gradients[1] = scale(sum_to(multiply(by_a, context.output(0)), context.input(1).shape()), -1);
  }
  return gradients;
}

void register_binary(Registry& registry) {
  const auto input = [](Shape shape, Values::Kind kind = Values::Kind::normal) {
    return SampleInput{{shape, DType::f32}, {kind}};
  };
  const auto samples = [&](auto make, Values::Kind kind) {
    return std::vector<Sample>{
        {"same_shape", make, {input({3, 5}), input({3, 5}, kind)}, true, true},
        {"image", make, {input({2, 3, 4, 5}), input({2, 3, 4, 5}, kind)}, true, true},
        {"row", make, {input({3, 5}), input({5}, kind)}, true, true},
        {"column", make, {input({3, 5}), input({3, 1}, kind)}, true, true},
        {"scalar", make, {input({3, 5}), input({}, kind)}, true, true},
        {"scalar_first", make, {input({}), input({3, 5}, kind)}, true, true},
        {"both_repeat", make, {input({3, 1, 4}), input({2, 1, 5, 1}, kind)}, true, true},
        {"channels", make, {input({2, 3, 4, 5}), input({3, 1, 1}, kind)}, true, true},
        {"per_sample", make, {input({2, 1, 4, 5}), input({2, 3, 1, 1}, kind)}, true, true}};
  };
  const auto integers = [](auto make, DType dtype) {
    const SampleInput integer{{{4, 3}, dtype}, {Values::Kind::integer, 100}, false};
    return Sample{std::string(name_of(dtype)), make, {integer, integer}, false};
  };
  const auto with_integers = [&](auto make) {
    std::vector<Sample> all = samples(make, Values::Kind::normal);
    all.push_back(integers(make, DType::i32));
    all.push_back(integers(make, DType::i64));
    return all;
  };
  registry.add("add", with_integers([](DType) { return std::make_shared<Add>(); }));
  registry.add("subtract", with_integers([](DType) { return std::make_shared<Subtract>(); }));
  registry.add("multiply", with_integers([](DType) { return std::make_shared<Multiply>(); }));
  registry.add("divide", samples([](DType) { return std::make_shared<Divide>(); }, Values::Kind::positive));
}

}  // namespace purine::ops
