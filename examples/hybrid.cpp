// Convolutions data parallel, fully connected layers tensor parallel, in one network: the former have few
// weights and many activations, the latter many weights and few activations ("one weird trick", Krizhevsky,
// 2014). It is said of a few tensors how they lie; everything else follows. parallel::hybrid() does the same
// in one call.
#include <fmt/core.h>
#include <purine/purine.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace purine;

namespace {

/// AlexNet's shape, small: two convolutions, then two fully connected layers with nine tenths of the weights.
struct Network {
  Graph graph;
  Tensor loss;

  Network() {
    const auto [image, label] = data::synthetic(graph, {.batch = 32, .image = {3, 16, 16}, .classes = 10});
    Tensor x = ops::relu(nn::conv2d(image, 16, 3, {.padding = 1}, "conv1"));
    x = ops::max_pool2d(x, {}, "pool1");
    x = ops::relu(nn::conv2d(x, 16, 3, {.padding = 1}, "conv2"));
    x = ops::max_pool2d(x, {}, "pool2");
    x = ops::relu(nn::linear(ops::flatten(x), 128, {}, "fc1"));
    const Tensor logits = nn::linear(x, 10, {}, "fc2");
    loss = ops::softmax_cross_entropy(logits, label, "loss");
    optim::momentum(loss, {.learning_rate = 0.05});
    graph.watch(loss);
  }
};

/// Divides the network over four devices, along one axis for both kinds of layer.
parallel::Partitioned divide(Network& network, const parallel::Mesh& mesh) {
  parallel::Specs specs(mesh);
  specs.split_samples(network.graph, "data");
  // fc1 makes a quarter of its outputs at each device, from the activations of all samples; fc2 takes just
  // those, so that nothing is sent between the two, and its sums over the devices come last.
  parallel::divide_layer(specs, network.graph, "fc1", parallel::Channels::output, "data");
  parallel::divide_layer(specs, network.graph, "fc2", parallel::Channels::input, "data");
  return parallel::partition(network.graph, specs);
}

std::vector<io::HostTensor> run_steps(Runtime& runtime, Graph& graph, Tensor loss,
                                      const std::vector<parallel::WholeVariable>& variables) {
  Session session(runtime, graph);
  for (const Step& step : session.run({.steps = 20})) {
    if (step.index % 10 == 9) fmt::print("  step {}: loss {:.4f}\n", step.index + 1, step.value(loss));
  }
  return whole_values(variables, session.variables());
}

/// Elements that a training step copies between devices, over all of them.
std::int64_t copied_elements(Graph& graph) {
  std::int64_t elements = 0;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    const bool to_device = op.type() == "copy" && op.input(0).location().kind == DeviceKind::emu;
    if (to_device) elements += op.input(0).shape().elements();
  }
  return elements;
}

}  // namespace

int main() {
  const parallel::Mesh mesh(parse_devices("emu:0-3"));
  Runtime runtime({.devices = mesh.locations()});

  fmt::print("one device\n");
  Network one;
  const auto expected = run_steps(runtime, one.graph, one.loss, parallel::whole_variables(one.graph));

  fmt::print("four devices\n");
  Network four;
  parallel::Partitioned divided = divide(four, mesh);
  for (const char* path : {"conv1/weight", "fc1/weight", "fc2/weight"}) {
    const Tensor variable = four.graph.find_variable(path);
    fmt::print("  {} lies {}\n", path, parallel::text(mesh, divided.spec(variable)));
  }
  const auto values = run_steps(runtime, divided.graph(), divided.at(four.loss),
                                parallel::whole_variables(four.graph, divided));

  Network other;
  parallel::Partitioned data_parallel = parallel::data_parallel(other.graph, mesh);
  fmt::print("elements sent in a step: {}, and {} with data parallelism alone\n",
             copied_elements(divided.graph()), copied_elements(data_parallel.graph()));

  double difference = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto left = expected[i].values<float>();
    const auto right = values[i].values<float>();
    for (std::size_t k = 0; k < left.size(); ++k) {
      difference = std::max(difference, static_cast<double>(std::abs(left[k] - right[k])));
    }
  }
  fmt::print("largest difference of a weight from one device: {:.1e}\n", difference);
  return difference < 1e-4 ? 0 : 1;
}
