// Pipelines in virtual time.
#include "purine/parallel/pipeline.h"

#include <gtest/gtest.h>

#include <vector>

#include "purine/nn/layers.h"
#include "purine/ops/loss.h"
#include "purine/optim/optimizers.h"
#include "purine/sim/simulation.h"

namespace purine::sim {
namespace {

// Four hosts of one core, on which a layer's forward pass, its input's gradient and its weight's gradient
// take about the same; messages next to nothing. A stage that waits for nothing would work for
// micro_batches * (f + b + w) in a batch. Of a pipeline that computes the gradients of weights with the
// others, 3 (f + b + w) more are idle; where they fill what is idle, 3 (f + b).
TEST(SimulatedPipelineTest, GradientsOfWeightsFillWhatIsIdle) {
  constexpr int stages = 4;
  constexpr int micro_batches = 8;
  const Cluster cluster = parse_cluster(
      "[cpu.core]\ncores = 1\nf32_gflops = 1\nmemory_gb_per_s = 1000\nmemory_gib = 4\n"
      "[card.fast]\ngbit_per_s = 10000\nlatency_us = 0\n[[host]]\ncount = 4\ncpu = \"core\"\ncard = "
      "\"fast\"\n",
      "four");
  const auto build = [](Graph& graph, std::int64_t samples) {
    Tensor x = graph.input("x", {{samples, 256}, DType::f32});
    const Tensor target = graph.input("target", {{samples, 256}, DType::f32});
    for (int i = 0; i < 8; ++i) x = nn::linear(x, 256, {.has_bias = false}, "layer" + std::to_string(i));
    optim::sgd(ops::mean_squared_error(x, target, "loss"));
  };
  Graph one;
  build(one, 16 * micro_batches);
  const double alone = simulate(one, cluster, {.barrier = true}).step_seconds;
  Graph graph;
  build(graph, 16 * micro_batches);
  std::vector<Location> locations;
  for (std::int32_t rank = 0; rank < stages; ++rank) locations.push_back({rank, DeviceKind::cpu, 0});
  parallel::Partitioned parts =
      parallel::pipeline(graph, parallel::Mesh(locations, "stage"), {.micro_batches = micro_batches});
  const double step = simulate(parts.graph(), cluster, {.barrier = true}).step_seconds;
  const double of_a_micro_batch = alone / stages / micro_batches;  // f + b + w at a stage
  const double idle = step - alone / stages;
  EXPECT_GT(idle, 0);
  EXPECT_LT(idle, 2.3 * of_a_micro_batch) << "3 times that, unless gradients of weights fill it";
}

}  // namespace
}  // namespace purine::sim
