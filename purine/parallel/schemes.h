// Ready-made ways to divide a graph. Each is what a program could do with Specs and partition() itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/partition.h"
#include "purine/parallel/spec.h"

namespace purine::parallel {

/// Where the next values of variables are computed, once the gradients' parts are summed.
enum class UpdateAt : std::uint8_t {
  everywhere,  ///< at each location alike, after an all-reduce of the gradient
  shards,    ///< each location updates a part: reduce-scatter, update, all-gather. It holds that part of the
             ///< optimiser's state alone
  one_each,  ///< each variable at one location, over which they are dealt out by size: parts of the gradient
             ///< are sent there, and the new value to all
};

struct DataParallelOptions {
  std::string axis = "data";  ///< of the mesh
  UpdateAt update = UpdateAt::everywhere;
  PartitionOptions partition = {};
};

/// Data parallelism: the samples are divided, variables are replicated. One step is what one location would
/// do with all samples, whatever the division: an all-reduce sums gradients that were divided by all samples.
Partitioned data_parallel(Graph& graph, const Mesh& mesh, const DataParallelOptions& options = {});

/// Which channels of a layer are divided.
enum class Channels : std::uint8_t {
  output,  ///< each location makes some of the output's channels from the whole input
  input,   ///< each location takes some of the input's channels; their outputs are summed
};

/// Says that a fully connected or convolution layer of purine/nn is divided: its variables `<layer>/weight`
/// and `<layer>/bias`. Throws Error if the layer doesn't exist.
void divide_layer(Specs& specs, Graph& graph, std::string_view layer, Channels channels,
                  std::string_view axis);
/// Says that each variable that is learnt is updated in one of the ways above.
void divide_updates(Specs& specs, Graph& graph, UpdateAt update, std::string_view axis);
/// The paths of the fully connected layers: of the scopes of rank-2 weights that `linear` operators read, in
/// the operators' order.
std::vector<std::string> fully_connected_layers(Graph& graph);

struct TensorParallelOptions {
  std::string axis = "model";
  std::vector<std::string> output = {};  ///< layers divided by their output's channels
  std::vector<std::string> input = {};   ///< layers divided by their input's channels
  std::string samples_axis = {};         ///< divides the samples along this axis, if there is one
  PartitionOptions partition = {};
};

/// Tensor parallelism: the weights of layers are divided. Where no layers are named, the fully connected ones
/// are, in turn by output and by input, so that nothing is sent between the two of a pair (Shoeybi et al.,
/// "Megatron-LM", 2019).
Partitioned tensor_parallel(Graph& graph, const Mesh& mesh, const TensorParallelOptions& options = {});

struct HybridOptions {
  std::string samples_axis = "data";
  /// Along which fully connected layers are divided; none: along the samples' axis too, whose locations then
  /// gather the activations of all samples before these layers.
  std::string layers_axis = {};
  std::vector<std::string> output = {};  ///< layers divided by their output's channels
  std::vector<std::string> input = {};   ///< layers divided by their input's channels
  PartitionOptions partition = {};
};

/// Convolutions data parallel, fully connected layers tensor parallel (Krizhevsky, "One weird trick for
/// parallelizing convolutional neural networks", 2014): the former have few weights and many activations, the
/// latter many weights and few activations. Where layers are named, those are divided, and all others data
/// parallel.
Partitioned hybrid(Graph& graph, const Mesh& mesh, const HybridOptions& options = {});

}  // namespace purine::parallel
