#include "purine/ops/cast.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor cast(Tensor x, DType dtype, std::string_view name) {
  if (x.dtype() == dtype) return x;
  return x.graph().add(std::make_shared<Cast>(dtype), {x}, name).output();
}

std::string Cast::attributes() const {
  return "dtype=" + std::string(name_of(dtype_));
}

std::vector<TensorInfo> Cast::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  return {{inputs[0].shape, dtype_}};
}

std::vector<Tensor> Cast::gradient(const GradientContext& context) const {
  return {cast(context.output_gradient(0), context.input(0).dtype())};
}

std::vector<SplitRule> Cast::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 1);
}

Cost Cast::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

void register_cast(Registry& registry) {
  const auto to = [](DType dtype) { return [dtype](DType) { return std::make_shared<Cast>(dtype); }; };
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  const auto integers = [](DType dtype) {
    return SampleInput{{{3, 5}, dtype}, {Values::Kind::integer, 256}, false};
  };
  registry.add("cast",
               {{"to_f64", to(DType::f64), {image}, true, true},
                {"same", [](DType dtype) { return std::make_shared<Cast>(dtype); }, {image}, true, true},
                {"to_i32", to(DType::i32), {image}, false},
                {"to_i64", to(DType::i64), {image}, false},
                {"to_u8", to(DType::u8), {image}, false},
                {"from_u8", to(DType::f32), {integers(DType::u8)}, false},
                {"from_i32", to(DType::f32), {integers(DType::i32)}, false},
                {"from_i64", to(DType::i32), {integers(DType::i64)}, false},
                {"narrow", to(DType::u8), {integers(DType::i64)}, false}});
}

}  // namespace purine::ops
