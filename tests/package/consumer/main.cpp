// A program of another project that uses the installed library: it fits y = w x to (1, 2) and (2, 4).
#include <fmt/core.h>
#include <purine/purine.h>

#include <cstring>
#include <span>
#include <vector>

using namespace purine;

int main() {
  Graph graph;
  const Tensor x = graph.input("x", {{2, 1}, DType::f32});
  const Tensor y = graph.input("y", {{2, 1}, DType::f32});
  const TensorInfo info{{1, 1}, DType::f32};
  const Variable weight = graph.variable("weight", info, ops::make_constant(info, 0));
  const Tensor loss = ops::mean_squared_error(ops::linear(x, weight, {}), y);
  optim::sgd(loss, {.learning_rate = 0.1});

  Runtime runtime;
  Session session(runtime, graph);
  const auto constant = [](std::vector<float> values) {
    return [values](std::int64_t, std::span<std::byte> bytes) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    };
  };
  session.feed(x, constant({1, 2}));
  session.feed(y, constant({2, 4}));
  for (const Step& step : session.run({.steps = 3})) {
    fmt::print("step {}: loss {:.3f}\n", step.index, step.value(loss));
  }
}
