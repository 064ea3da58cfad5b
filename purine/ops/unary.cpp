#include "purine/ops/unary.h"

#include <fmt/format.h>

#include "purine/ops/binary.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor scale(Tensor x, double factor, std::string_view name) {
  return x.graph().add(std::make_shared<Scale>(factor), {x}, name).output();
}

Tensor shift(Tensor x, double offset, std::string_view name) {
  return x.graph().add(std::make_shared<Shift>(offset), {x}, name).output();
}

Tensor square(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Square>(), {x}, name).output();
}

Tensor sqrt(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Sqrt>(), {x}, name).output();
}

Tensor exp(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Exp>(), {x}, name).output();
}

Tensor log(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Log>(), {x}, name).output();
}

std::string Scale::attributes() const {
  return fmt::format("factor={}", factor_);
}

std::vector<Tensor> Scale::gradient(const GradientContext& context) const {
  return {scale(context.output_gradient(0), factor_)};
}

std::string Shift::attributes() const {
  return fmt::format("offset={}", offset_);
}

std::vector<Tensor> Shift::gradient(const GradientContext& context) const {
  return {context.output_gradient(0)};
}

std::vector<Tensor> Square::gradient(const GradientContext& context) const {
  return {multiply(context.output_gradient(0), scale(context.input(0), 2))};
}

std::vector<Tensor> Sqrt::gradient(const GradientContext& context) const {
  return {divide(context.output_gradient(0), scale(context.output(0), 2))};
}

std::vector<Tensor> Exp::gradient(const GradientContext& context) const {
  return {multiply(context.output_gradient(0), context.output(0))};
}

std::vector<Tensor> Log::gradient(const GradientContext& context) const {
  return {divide(context.output_gradient(0), context.input(0))};
}

void register_unary(Registry& registry) {
  const SampleInput normal{{{3, 5}, DType::f32}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  const SampleInput positive{{{3, 5}, DType::f32}, {Values::Kind::positive}};
  const SampleInput scalar{{{}, DType::f32}, {Values::Kind::positive}};
  registry.add("scale",
               {{"matrix", [](DType) { return std::make_shared<Scale>(-1.75); }, {normal}, true, true},
                {"image", [](DType) { return std::make_shared<Scale>(0.5); }, {image}, true, true},
                {"scalar", [](DType) { return std::make_shared<Scale>(3); }, {scalar}, true, true}});
  registry.add("shift",
               {{"matrix", [](DType) { return std::make_shared<Shift>(0.3); }, {normal}, true, true}});
  registry.add("square", {{"matrix", [](DType) { return std::make_shared<Square>(); }, {normal}, true, true},
                          {"image", [](DType) { return std::make_shared<Square>(); }, {image}, true, true}});
  registry.add("sqrt", {{"matrix", [](DType) { return std::make_shared<Sqrt>(); }, {positive}, true, true}});
  registry.add("exp", {{"matrix", [](DType) { return std::make_shared<Exp>(); }, {normal}, true, true},
                       {"scalar", [](DType) { return std::make_shared<Exp>(); }, {scalar}, true, true}});
  registry.add("log", {{"matrix", [](DType) { return std::make_shared<Log>(); }, {positive}, true, true}});
}

}  // namespace purine::ops
