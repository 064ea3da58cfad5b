#include "purine/ops/clip.h"

#include <fmt/format.h>

#include "purine/ops/cast.h"
#include "purine/ops/copy.h"
#include "purine/ops/reduce.h"
#include "purine/ops/registry.h"
#include "purine/ops/sum_n.h"
#include "purine/ops/unary.h"

namespace purine::ops {

Tensor clip(Tensor x, double low, double high, std::string_view name) {
  return x.graph().add(std::make_shared<Clip>(low, high), {x}, name).output();
}

Tensor global_norm(std::span<const Tensor> tensors, std::string_view name) {
  if (tensors.empty()) throw Error("global_norm", "takes at least one tensor, got none");
  Graph& graph = tensors[0].graph();
  const auto scope = graph.scope(name);
  const Location home = tensors[0].location();
  std::vector<Tensor> squares;
  for (const Tensor tensor : tensors) {
    const auto placement = graph.at(tensor.location());
    squares.push_back(copy(sum_of_squares(tensor), home));
  }
  const auto placement = graph.at(home);
  return cast(sqrt(sum_n(squares)), tensors[0].dtype());
}

Tensor global_norm(std::initializer_list<Tensor> tensors, std::string_view name) {
  return global_norm(std::span<const Tensor>(tensors.begin(), tensors.size()), name);
}

Clip::Clip(double low, double high) : Elementwise("clip", {"x"}, 2), low_(low), high_(high) {
  if (!(low <= high)) throw Error(type(), fmt::format("[{}, {}] holds no value", low, high));
}

std::string Clip::attributes() const {
  return fmt::format("low={} high={}", low_, high_);
}

std::vector<Tensor> Clip::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<ClipGradient>(low_, high_), {context.output_gradient(0), context.input(0)})
          .output()};
}

std::string ClipGradient::attributes() const {
  return fmt::format("low={} high={}", low_, high_);
}

std::vector<Tensor> ClipGradient::gradient(const GradientContext& context) const {
  // Linear in the output gradient; flat in x, off the bounds.
  Graph& graph = context.op().graph();
  if (!context.needs(0)) return {Tensor(), Tensor()};
  return {graph.add(self(), {context.output_gradient(0), context.input(1)}).output(), Tensor()};
}

void register_clip(Registry& registry) {
  // The bounds lie where these values keep away from: near 0, or far outside.
  const SampleInput off_bounds{{{5, 8}, DType::f32}, {Values::Kind::off_kinks}};
  const SampleInput fixed{{{5, 8}, DType::f32}, {Values::Kind::off_kinks}, false};
  const SampleInput normal{{{5, 8}, DType::f32}};
  registry.add(
      "clip",
      {{"at_zero", [](DType) { return std::make_shared<Clip>(0, 100); }, {off_bounds}, true, true},
       {"everything", [](DType) { return std::make_shared<Clip>(-0.05, 0.05); }, {off_bounds}, true, true},
       {"nothing", [](DType) { return std::make_shared<Clip>(-100, 100); }, {normal}, true, true}});
  registry.add("clip_gradient", {{"at_zero",
                                  [](DType) { return std::make_shared<ClipGradient>(0, 100); },
                                  {normal, fixed},
                                  true,
                                  true}});
}

}  // namespace purine::ops
