// An all-reduce of one's own: any function that adds vertices which give the sum everywhere. This one passes
// a running sum from location to location and then the result back, for a line of devices with slow links
// between them.
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/copy.h"
#include "purine/ops/loss.h"
#include "purine/ops/sum_n.h"
#include "purine/optim/optimizers.h"
#include "purine/parallel/schemes.h"
#include "purine/session/session.h"

using namespace purine;

/// `parts` lie at different locations; the results must too, in their order.
std::vector<Tensor> line_all_reduce(std::span<const Tensor> parts, std::int64_t /*number*/) {
  Graph& graph = parts.front().graph();
  Tensor running = parts.front();
  for (const Tensor part : parts.subspan(1)) {
    const auto here = graph.at(part.location());
    running = ops::sum_n({ops::copy(running, part.location()), part});
  }
  std::vector<Tensor> sums(parts.size());
  for (std::size_t i = parts.size(); i-- > 0;) {
    running = ops::copy(running, parts[i].location());
    sums[i] = running;
  }
  return sums;
}

int main() {
  Graph graph;
  const Tensor x = graph.input("x", {{6, 4}, DType::f32});
  const Tensor target = graph.input("target", {{6, 1}, DType::f32});
  const Tensor loss = ops::mean_squared_error(nn::linear(x, 1), target, "loss");
  optim::momentum(loss, {.learning_rate = 0.1});

  // Three emulated accelerators; the graph for one device stays as it is.
  parallel::Partitioned three = parallel::data_parallel(graph, parallel::Mesh{"emu:0", "emu:1", "emu:2"},
                                                        {.partition = {.all_reduce = line_all_reduce}});
  Runtime runtime({.workers = 2, .devices = three.mesh().locations()});
  Session session(runtime, three.graph());
  session.feed(three.at(x), [](std::int64_t iteration, std::span<std::byte> bytes) {
    std::array<float, 24> values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((static_cast<std::size_t>(iteration) * 7 + i * 5) % 11) / 5 - 1;
    }
    std::memcpy(bytes.data(), values.data(), bytes.size());
  });
  session.feed(three.at(target),
               [](std::int64_t, std::span<std::byte> bytes) { std::memset(bytes.data(), 0, bytes.size()); });
  for (const Step& step : session.run({.steps = 30})) {
    if (step.index % 10 == 0) fmt::print("step {}: loss {:.4f}\n", step.index, step.value(three.at(loss)));
  }
  return 0;
}
