#include "purine/train/schemes.h"

#include <algorithm>

#include "purine/core/error.h"
#include "purine/parallel/pipeline.h"
#include "purine/parallel/schemes.h"

namespace purine::train {
namespace {

using parallel::Mesh;
using parallel::Partitioned;
using parallel::PartitionOptions;

bool has_axis(const Mesh& mesh, std::string_view name) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(),
                     [&](const parallel::MeshAxis& axis) { return axis.name == name; });
}

Partitioned data(Graph& graph, const Mesh& mesh, const Job::Parallel& keys, const PartitionOptions& options) {
  const bool one_each = keys.update == "one_each";
  return parallel::data_parallel(
      graph, mesh,
      {.update = one_each ? parallel::UpdateAt::one_each : parallel::UpdateAt::everywhere,
       .partition = options});
}

Partitioned sharded(Graph& graph, const Mesh& mesh, const Job::Parallel&, const PartitionOptions& options) {
  return parallel::data_parallel(graph, mesh, {.update = parallel::UpdateAt::shards, .partition = options});
}

Partitioned tensor(Graph& graph, const Mesh& mesh, const Job::Parallel& keys,
                   const PartitionOptions& options) {
  return parallel::tensor_parallel(graph, mesh,
                                   {.output = keys.output_layers,
                                    .input = keys.input_layers,
                                    .samples_axis = has_axis(mesh, "data") ? "data" : "",
                                    .partition = options});
}

Partitioned hybrid(Graph& graph, const Mesh& mesh, const Job::Parallel& keys,
                   const PartitionOptions& options) {
  return parallel::hybrid(graph, mesh,
                          {.layers_axis = has_axis(mesh, "model") ? "model" : "",
                           .output = keys.output_layers,
                           .input = keys.input_layers,
                           .partition = options});
}

Partitioned pipeline(Graph& graph, const Mesh& mesh, const Job::Parallel& keys,
                     const PartitionOptions& options) {
  return parallel::pipeline(graph, mesh,
                            {.micro_batches = static_cast<int>(keys.micro_batches),
                             .stage_shares = keys.stage_shares,
                             .partition = options});
}

}  // namespace

bool Scheme::takes(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const std::vector<Scheme>& all_schemes() {
  constexpr std::string_view statistics = "synchronized_batch_normalization";
  static const std::vector<Scheme> schemes = {
      {"single", "one device", "data", "", {}, true, nullptr},
      {"data", "data parallelism", "data", "", {"shares", "update", statistics}, true, data},
      {"sharded",
       "data parallelism with a sharded update",
       "data",
       "",
       {"shares", statistics},
       true,
       sharded},
      {"tensor",
       "tensor parallelism",
       "model",
       "data",
       {"shares", "output_layers", "input_layers", statistics},
       true,
       tensor},
      {"hybrid",
       "data parallel convolutions, tensor parallel fully connected layers",
       "data",
       "model",
       {"shares", "output_layers", "input_layers", statistics},
       true,
       hybrid},
      {"pipeline",
       "a pipeline",
       "stage",
       "data",
       {"shares", "micro_batches", "stage_shares"},
       false,
       pipeline},
  };
  return schemes;
}

const Scheme& find_scheme(std::string_view name) {
  const std::vector<Scheme>& schemes = all_schemes();
  const auto found =
      std::find_if(schemes.begin(), schemes.end(), [&](const Scheme& scheme) { return scheme.name == name; });
  PURINE_CHECK(found != schemes.end());
  return *found;
}

}  // namespace purine::train
