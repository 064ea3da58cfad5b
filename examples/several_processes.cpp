// One network over as many processes as the launcher starts; alone, it is one process. Each of them builds
// the same graph, runs its own part of it and exchanges what the others need:
//   mpirun -n 2 --bind-to none example_several_processes
// The losses are the same to the last digits however many there are: an all-reduce sums what one process
// would.
#include <fmt/core.h>
#include <purine/purine.h>

#include <exception>
#include <memory>
#include <vector>

using namespace purine;

namespace {

void train_lenet(Endpoint* endpoint) {
  Graph g;
  const auto [image, label] = data::synthetic(g, {.batch = 32, .image = {1, 28, 28}, .classes = 10});
  const Tensor loss = ops::softmax_cross_entropy(models::lenet(image, 10), label);
  g.watch(loss);
  optim::momentum(loss, {.learning_rate = 0.01});

  std::vector<Location> processors;
  for (int rank = 0; rank < (endpoint != nullptr ? endpoint->size() : 1); ++rank) {
    processors.push_back({rank, DeviceKind::cpu, 0});
  }
  // Each process updates a part of the weights, and has that part of the optimiser's state.
  parallel::Partitioned divided =
      parallel::data_parallel(g, parallel::Mesh(processors), {.update = parallel::UpdateAt::shards});

  Runtime runtime({.devices = processors, .endpoint = endpoint});
  Session session(runtime, divided.graph());
  const Tensor whole_loss = divided.at(loss);
  for (const Step& step : session.run({.steps = 20})) {
    // The loss lies at one of the processes.
    if (step.index % 5 == 4 && step.has(whole_loss)) {
      fmt::print("step {}: loss {:.6f}\n", step.index, step.value(whole_loss));
    }
  }
}

}  // namespace

int main() {
  const std::unique_ptr<Endpoint> endpoint = net::connect_if_launched();
  try {
    train_lenet(endpoint.get());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;  // the launcher then ends the others, which have heard the cause
  }
  return 0;
}
