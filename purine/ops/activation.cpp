#include "purine/ops/activation.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "purine/ops/binary.h"
#include "purine/ops/registry.h"
#include "purine/ops/unary.h"

namespace purine::ops {
namespace {

// The second derivative of gelu with the normal distribution function: density(x) * (2 - x^2).
Tensor gelu_second_derivative(Tensor x) {
  const Tensor squared = square(x);
  const Tensor density =
      scale(exp(scale(squared, -0.5)), std::numbers::inv_sqrtpi_v<double> / std::numbers::sqrt2_v<double>);
  return multiply(density, shift(scale(squared, -1), 2));
}

// The second derivative of 0.5 x (1 + t), t = tanh(u), u = c (x + a x^3):
// (1 - t^2) (u' + 0.5 x u'' - x t u'^2), where u' = c (1 + 3 a x^2) and u'' = 6 c a x.
Tensor approximate_gelu_second_derivative(Tensor x) {
  const double c = std::numbers::sqrt2_v<double> * std::numbers::inv_sqrtpi_v<double>;
  const double a = 0.044715;
  const Tensor squared = square(x);
  const Tensor t = tanh(multiply(x, shift(scale(squared, c * a), c)));
  const Tensor first = shift(scale(squared, 3 * c * a), c);
  const Tensor half_x_second = scale(squared, 3 * c * a);
  const Tensor last = multiply(multiply(x, t), square(first));
  return multiply(shift(scale(square(t), -1), 1), subtract(add(first, half_x_second), last));
}

}  // namespace

Tensor leaky_relu(Tensor x, double slope, std::string_view name) {
  return x.graph().add(std::make_shared<LeakyRelu>(slope), {x}, name).output();
}

Tensor sigmoid(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Sigmoid>(), {x}, name).output();
}

Tensor tanh(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<Tanh>(), {x}, name).output();
}

Tensor gelu(Tensor x, bool approximate, std::string_view name) {
  return x.graph().add(std::make_shared<Gelu>(approximate), {x}, name).output();
}

LeakyRelu::LeakyRelu(double slope) : Elementwise("leaky_relu", {"x"}, 1), slope_(slope) {
  // The gradient reads the sign of x off the output, which a negative slope would hide.
  if (!(slope >= 0) || !std::isfinite(slope)) {
    throw Error(type(), fmt::format("slope is {}, it must be finite and at least 0", slope));
  }
}

std::string LeakyRelu::attributes() const {
  return fmt::format("slope={}", slope_);
}

std::vector<Tensor> LeakyRelu::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<LeakyReluGradient>(slope_), {context.output_gradient(0), context.output(0)})
          .output()};
}

std::string LeakyReluGradient::attributes() const {
  return fmt::format("slope={}", slope_);
}

std::vector<Tensor> LeakyReluGradient::gradient(const GradientContext& context) const {
  // Linear in the output gradient; flat in the output, off the kink.
  Graph& graph = context.op().graph();
  if (!context.needs(0)) return {Tensor(), Tensor()};
  return {graph.add(self(), {context.output_gradient(0), context.input(1)}).output(), Tensor()};
}

std::vector<Tensor> Sigmoid::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {graph.add(std::make_shared<SigmoidGradient>(), {context.output_gradient(0), context.output(0)})
              .output()};
}

std::vector<Tensor> SigmoidGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor incoming = context.output_gradient(0);
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = graph.add(self(), {incoming, context.input(1)}).output();
  if (context.needs(1)) {
    gradients[1] = multiply(multiply(incoming, context.input(0)), shift(scale(context.input(1), -2), 1));
  }
  return gradients;
}

std::vector<Tensor> Tanh::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<TanhGradient>(), {context.output_gradient(0), context.output(0)}).output()};
}

std::vector<Tensor> TanhGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor incoming = context.output_gradient(0);
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = graph.add(self(), {incoming, context.input(1)}).output();
  if (context.needs(1)) {
    gradients[1] = multiply(multiply(incoming, context.input(0)), scale(context.input(1), -2));
  }
  return gradients;
}

std::string Gelu::attributes() const {
  return fmt::format("approximate={}", approximate_);
}

std::vector<Tensor> Gelu::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<GeluGradient>(approximate_), {context.output_gradient(0), context.input(0)})
          .output()};
}

std::string GeluGradient::attributes() const {
  return fmt::format("approximate={}", approximate_);
}

std::vector<Tensor> GeluGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  const Tensor incoming = context.output_gradient(0);
  const Tensor x = context.input(1);
  std::vector<Tensor> gradients(2);
  if (context.needs(0)) gradients[0] = graph.add(self(), {incoming, x}).output();
  if (context.needs(1)) {
    gradients[1] = multiply(multiply(incoming, context.input(0)),
                            approximate_ ? approximate_gelu_second_derivative(x) : gelu_second_derivative(x));
  }
  return gradients;
}

void register_activation(Registry& registry) {
  const SampleInput normal{{{3, 7}, DType::f32}};
  const SampleInput image{{{2, 3, 4, 5}, DType::f32}};
  const SampleInput off_kinks{{{3, 7}, DType::f32}, {Values::Kind::off_kinks}};
  const SampleInput fixed_off_kinks{{{3, 7}, DType::f32}, {Values::Kind::off_kinks}, false};
  registry.add("leaky_relu",
               {{"default", [](DType) { return std::make_shared<LeakyRelu>(0.01); }, {off_kinks}, true, true},
                {"steep", [](DType) { return std::make_shared<LeakyRelu>(0.5); }, {off_kinks}, true, true}});
  registry.add("leaky_relu_gradient", {{"steep",
                                        [](DType) { return std::make_shared<LeakyReluGradient>(0.5); },
                                        {off_kinks, fixed_off_kinks},
                                        true,
                                        true}});
  registry.add("sigmoid",
               {{"matrix", [](DType) { return std::make_shared<Sigmoid>(); }, {normal}, true, true},
                {"image", [](DType) { return std::make_shared<Sigmoid>(); }, {image}, true, true}});
  registry.add(
      "sigmoid_gradient",
      {{"matrix", [](DType) { return std::make_shared<SigmoidGradient>(); }, {normal, normal}, true, true}});
  registry.add("tanh", {{"matrix", [](DType) { return std::make_shared<Tanh>(); }, {normal}, true, true},
                        {"image", [](DType) { return std::make_shared<Tanh>(); }, {image}, true, true}});
  registry.add(
      "tanh_gradient",
      {{"matrix", [](DType) { return std::make_shared<TanhGradient>(); }, {normal, normal}, true, true}});
  registry.add("gelu",
               {{"exact", [](DType) { return std::make_shared<Gelu>(false); }, {normal}, true, true},
                {"approximate", [](DType) { return std::make_shared<Gelu>(true); }, {image}, true, true}});
  registry.add(
      "gelu_gradient",
      {{"exact", [](DType) { return std::make_shared<GeluGradient>(false); }, {normal, normal}, true, true},
       {"approximate",
        [](DType) { return std::make_shared<GeluGradient>(true); },
        {normal, normal},
        true,
        true}});
}

}  // namespace purine::ops
