#include "purine/ops/narrow.h"

#include <fmt/format.h>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

std::string_view name_of(NarrowFormat format) {
  return format == NarrowFormat::f16 ? "f16" : "bf16";
}

Tensor narrow(Tensor x, NarrowFormat format, std::string_view name) {
  return x.graph().add(std::make_shared<Narrow>(format), {x}, name).output();
}

Tensor widen(Tensor bytes, NarrowFormat format, DType dtype, std::string_view name) {
  return bytes.graph().add(std::make_shared<Widen>(format, dtype), {bytes}, name).output();
}

std::string Narrow::attributes() const {
  return fmt::format("format={}", name_of(format_));
}

std::vector<TensorInfo> Narrow::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_floating(type(), inputs[0], "x");
  if (inputs[0].shape.rank() != 1) {
    throw Error(type(), "x is " + inputs[0].text() + ", a tensor of rank 1 is needed",
                "ops::reshape(x, {-1})");
  }
  return {{{2 * inputs[0].shape[0]}, DType::u8}};
}

std::vector<SplitRule> Narrow::split_rules(std::span<const TensorInfo> inputs) const {
  return {{{0}, {0}, inputs[0].shape[0], false}};
}

Cost Narrow::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 4);
}

std::string Widen::attributes() const {
  return fmt::format("format={} dtype={}", name_of(format_), purine::name_of(dtype_));
}

std::vector<TensorInfo> Widen::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  const TensorInfo& bytes = inputs[0];
  if (bytes.dtype != DType::u8 || bytes.shape.rank() != 1 || bytes.shape[0] % 2 != 0) {
    throw Error(type(), "bytes are " + bytes.text() + ", an even number of u8 is needed");
  }
  if (!is_floating(dtype_)) {
    throw Error(type(), fmt::format("makes f32 or f64, {} was asked for", purine::name_of(dtype_)));
  }
  return {{{bytes.shape[0] / 2}, dtype_}};
}

std::vector<SplitRule> Widen::split_rules(std::span<const TensorInfo> inputs) const {
  return {{{0}, {0}, inputs[0].shape[0] / 2, false}};
}

Cost Widen::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 4);
}

void register_narrow(Registry& registry) {
  const SampleInput numbers{{{23}, DType::f32}};
  const auto narrow_to = [](NarrowFormat format) {
    return [format](DType) { return std::make_shared<Narrow>(format); };
  };
  registry.add("narrow", {{"f16", narrow_to(NarrowFormat::f16), {numbers}, false},
                          {"bf16", narrow_to(NarrowFormat::bf16), {numbers}, false}});
  // Bytes below 60 are finite numbers in both formats.
  const SampleInput bytes{{{46}, DType::u8}, {Values::Kind::integer, 60}, false};
  const auto widen_from = [](NarrowFormat format) {
    return [format](DType dtype) { return std::make_shared<Widen>(format, dtype); };
  };
  registry.add("widen", {{"f16", widen_from(NarrowFormat::f16), {bytes}, false},
                         {"bf16", widen_from(NarrowFormat::bf16), {bytes}, false}});
}

}  // namespace purine::ops
