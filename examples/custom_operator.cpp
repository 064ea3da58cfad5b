// An operator that the library doesn't have: its contract, its kernel, and a graph that trains through it.
#include <fmt/core.h>

#include <cmath>

#include "purine/nn/layers.h"
#include "purine/ops/activation.h"
#include "purine/ops/binary.h"
#include "purine/ops/contract_helpers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/session/session.h"

using namespace purine;

// The contract says all that is known before anything runs. docs/adding-an-operator.md explains each member.
class Swish final : public Contract {
 public:
  std::string_view type() const override { return "swish"; }
  std::string attributes() const override { return {}; }
  std::vector<TensorInfo> infer(std::span<const TensorInfo> inputs) const override {
    ops::check_input_count(type(), inputs, 1);
    if (inputs[0].dtype != DType::f32) throw Error(type(), "x is " + inputs[0].text() + ", f32 is needed");
    return {inputs[0]};
  }
  // The gradient is a graph of operators. With s = sigmoid(x) and y = x * s, dy/dx = s + y - y * s.
  std::vector<Tensor> gradient(const GradientContext& context) const override {
    const Tensor s = ops::sigmoid(context.input(0));
    const Tensor y = context.output(0);
    const Tensor slope = ops::add(s, ops::subtract(y, ops::multiply(y, s)));
    return {ops::multiply(context.output_gradient(0), slope)};
  }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo> inputs) const override {
    return ops::split_every_dimension(inputs[0], 1, 1);
  }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const override {
    return ops::elementwise_cost(inputs, outputs, 10);
  }
  std::vector<Sharing> sharing() const override { return {{0, 0, Sharing::Kind::overwrite}}; }
  LayoutRule layouts() const override { return {LayoutRule::all, LayoutRule::all, false}; }
};

Tensor swish(Tensor x, std::string_view name = "swish") {
  return x.graph().add(std::make_shared<Swish>(), {x}, name).output();
}

// The kernel does the work. Binding sees shapes and attributes once; what it returns runs in every iteration.
std::unique_ptr<Kernel> bind_swish(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  return make_kernel([elements](const KernelCall& call) {
    const float* x = call.input<float>(0);
    float* y = call.output<float>(0);
    for (std::int64_t i = 0; i < elements; ++i) y[i] = x[i] / (1 + std::exp(-x[i]));
  });
}

int main() {
  // A small network learns y = sin(x) at 64 places.
  Graph graph;
  const Tensor x = graph.input("x", {{64, 1}, DType::f32});
  const Tensor target = graph.input("target", {{64, 1}, DType::f32});
  const Tensor hidden = swish(nn::linear(x, 32, {.weight = nn::normal(0, 1)}, "hidden"));
  const Tensor loss = ops::mean_squared_error(nn::linear(hidden, 1, {}, "out"), target, "loss");
  optim::adam(loss, {.learning_rate = 0.02});

  Runtime runtime;
  runtime.cpu_kernels().add("swish", bind_swish);
  Session session(runtime, graph);
  const auto fill = [](std::span<std::byte> value, auto function) {
    auto* elements = reinterpret_cast<float*>(value.data());
    for (int i = 0; i < 64; ++i) elements[i] = function(-3.0F + 6.0F * static_cast<float>(i) / 63.0F);
  };
  session.feed(x,
               [&](std::int64_t, std::span<std::byte> value) { fill(value, [](float at) { return at; }); });
  session.feed(target, [&](std::int64_t, std::span<std::byte> value) {
    fill(value, [](float at) { return std::sin(at); });
  });
  double first = 0;
  double last = 0;
  for (const Step& step : session.run({.steps = 300})) {
    last = step.value(loss);
    if (step.index == 0) first = last;
    if (step.index % 50 == 0) fmt::print("step {}: loss {:.5f}\n", step.index, last);
  }
  return last < first / 10 ? 0 : 1;
}
