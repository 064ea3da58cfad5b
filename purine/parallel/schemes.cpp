#include "purine/parallel/schemes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "purine/core/error.h"
#include "purine/core/nearest.h"

namespace purine::parallel {
namespace {

std::string scope_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// A dimension that every coordinate gets some of, or else the largest.
int dimension_to_divide(const Shape& shape, int coordinates) {
  const auto enough = [&](std::int64_t extent) { return extent >= coordinates; };
  const auto found = std::find_if(shape.begin(), shape.end(), enough);
  const auto* chosen = found != shape.end() ? found : std::max_element(shape.begin(), shape.end());
  return static_cast<int>(chosen - shape.begin());
}

std::vector<std::string> layers_with_weights(Graph& graph) {
  std::vector<std::string> layers;
  for (const Variable variable : graph.variables()) {
    if (variable.trainable() && variable.shape().rank() > 1 && variable.path().ends_with("/weight"))
      layers.push_back(scope_of(variable.path()));
  }
  return layers;
}

void divide_alternately(Specs& specs, Graph& graph, std::string_view axis) {
  Channels channels = Channels::output;
  for (const std::string& layer : fully_connected_layers(graph)) {
    divide_layer(specs, graph, layer, channels, axis);
    channels = channels == Channels::output ? Channels::input : Channels::output;
  }
}

// The named layers, or, where none are, the fully connected ones. The names of layers are checked when they
// are divided.
void divide_layers(Specs& specs, Graph& graph, std::string_view axis, const std::vector<std::string>& output,
                   const std::vector<std::string>& input) {
  if (output.empty() && input.empty()) return divide_alternately(specs, graph, axis);
  for (const std::string& layer : output) divide_layer(specs, graph, layer, Channels::output, axis);
  for (const std::string& layer : input) divide_layer(specs, graph, layer, Channels::input, axis);
}

}  // namespace

void divide_layer(Specs& specs, Graph& graph, std::string_view layer, Channels channels,
                  std::string_view axis) {
  const Variable weight = graph.find_variable(std::string(layer) + "/weight");
  if (!weight.valid()) {
    const std::vector<std::string> layers = layers_with_weights(graph);
    // Whoever leaves out the network's name means the layer that ends so.
    const auto end = std::find_if(layers.begin(), layers.end(), [&](const std::string& path) {
      return path.ends_with("/" + std::string(layer));
    });
    const std::string near = end != layers.end() ? *end : nearest(layer, layers);
    throw Error("parallel", fmt::format("there is no layer '{}' with a weight", layer),
                near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  // Weights are [outputs, inputs, …] of both kinds of layer.
  specs.set(weight, axis, split(channels == Channels::output ? 0 : 1));
  const Variable bias = graph.find_variable(std::string(layer) + "/bias");
  if (bias.valid() && channels == Channels::output) specs.set(bias, axis, split(0));
}

void divide_updates(Specs& specs, Graph& graph, UpdateAt update, std::string_view axis) {
  const int coordinates = specs.mesh().axis_size(specs.mesh().axis(axis));
  if (update == UpdateAt::everywhere) return;
  const std::vector<Variable> variables = graph.variables();
  std::vector<std::vector<Variable>> updated_by(graph.operator_count());
  for (const Variable variable : variables) {
    if (variable.has_next() && variable.next().has_producer()) {
      updated_by[variable.next().producer().index()].push_back(variable);
    }
  }
  std::vector<std::size_t> dealt(static_cast<std::size_t>(coordinates), 0);  // bytes
  for (const Variable variable : variables) {
    if (!variable.trainable() || !variable.has_next() || !variable.next().has_producer()) continue;
    if (variable.shape().rank() == 0) continue;
    const auto least = std::min_element(dealt.begin(), dealt.end());
    *least += variable.info().bytes();
    const Placement placement = update == UpdateAt::shards
                                    ? split(dimension_to_divide(variable.shape(), coordinates))
                                    : at_coordinate(static_cast<int>(least - dealt.begin()));
    specs.set(variable.next(), axis, placement);
    const Operator op = variable.next().producer();
    for (const Variable state : updated_by[op.index()]) {
      if (!(state == variable) && state.shape() == variable.shape()) specs.set(state, axis, placement);
    }
    // The gradient goes right where the update is.
    for (const Tensor input : op.inputs()) {
      if (input.has_producer() && input.shape() == variable.shape()) specs.set(input, axis, placement);
    }
  }
}

std::vector<std::string> fully_connected_layers(Graph& graph) {
  std::vector<std::string> layers;
  for (std::uint32_t i = 0; i < graph.operator_count(); ++i) {
    const Operator op = graph.op(i);
    if (op.type() != "linear" || !graph.is_variable(op.input(1))) continue;
    std::string layer = scope_of(op.input(1).path());
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(std::move(layer));
  }
  return layers;
}

Partitioned data_parallel(Graph& graph, const Mesh& mesh, const DataParallelOptions& options) {
  Specs specs(mesh);
  specs.split_samples(graph, options.axis);
  divide_updates(specs, graph, options.update, options.axis);
  return partition(graph, specs, options.partition);
}

Partitioned tensor_parallel(Graph& graph, const Mesh& mesh, const TensorParallelOptions& options) {
  Specs specs(mesh);
  if (!options.samples_axis.empty()) specs.split_samples(graph, options.samples_axis);
  divide_layers(specs, graph, options.axis, options.output, options.input);
  return partition(graph, specs, options.partition);
}

Partitioned hybrid(Graph& graph, const Mesh& mesh, const HybridOptions& options) {
  Specs specs(mesh);
  specs.split_samples(graph, options.samples_axis);
  divide_layers(specs, graph, options.layers_axis.empty() ? options.samples_axis : options.layers_axis,
                options.output, options.input);
  return partition(graph, specs, options.partition);
}

}  // namespace purine::parallel
