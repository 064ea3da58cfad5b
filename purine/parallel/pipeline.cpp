#include "purine/parallel/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/graph/transform.h"
#include "purine/parallel/partitioned_data.h"
#include "purine/parallel/pipeliner.h"

namespace purine::parallel {
namespace {

constexpr const char* micro_batches_name = "micro_batch";

/// The index of the stages' axis, and of the samples' axis if there is one.
struct Axes {
  int stages = 0;
  std::optional<int> samples;
};

Axes find_axes(const Mesh& mesh, const PipelineOptions& options) {
  Axes axes;
  if (mesh.axis_count() == 1) return axes;
  axes.stages = mesh.axis(options.stage_axis);
  axes.samples = mesh.axis(options.samples_axis);
  if (mesh.axis_count() > 2 || axes.stages == *axes.samples) {
    throw Error("pipeline",
                fmt::format("the mesh {} has other axes than {}, of the stages, and {}, of the samples",
                            mesh.text(), options.stage_axis, options.samples_axis));
  }
  return axes;
}

Mesh mesh_of_stage(const Mesh& mesh, const Axes& axes, int stage) {
  std::vector<Location> locations;
  for (int i = 0; i < mesh.size(); ++i) {
    if (mesh.coordinate(i, axes.stages) == stage) {
      locations.push_back(mesh.locations()[static_cast<std::size_t>(i)]);
    }
  }
  if (!axes.samples) return Mesh(std::move(locations));
  const MeshAxis& samples = mesh.axes()[static_cast<std::size_t>(*axes.samples)];
  Mesh result(std::move(locations), samples.name);
  if (!samples.shares.empty()) result.set_shares(samples.name, samples.shares);
  return result;
}

/// Micro-batches and samples. The locations only have to be different.
Mesh divided_mesh(const Mesh& stage, int micro_batches) {
  const MeshAxis& samples = stage.axes().front();
  std::vector<Location> locations;
  for (int i = 0; i < micro_batches * samples.size; ++i) locations.push_back({0, DeviceKind::sim, i});
  Mesh result(fmt::format("{}={},{}={}", micro_batches_name, micro_batches, samples.name, samples.size),
              std::move(locations));
  if (!samples.shares.empty()) result.set_shares(samples.name, samples.shares);
  return result;
}

/// One pipeline for every number of samples.
class Builder {
 public:
  Builder(Graph& graph, const Mesh& mesh, const PipelineOptions& options)
      : mesh_(mesh),
        options_(options),
        axes_(find_axes(mesh, options)),
        stages_(assign_stages(graph, mesh.axis_size(axes_.stages), options.cost, options.stage_shares)),
        reductions_(reductions_of(options.partition)) {
    for (int s = 0; s < stages_.count; ++s) meshes_.push_back(mesh_of_stage(mesh, axes_, s));
  }

  Mesh divided(std::int64_t samples) const {
    const int wanted = options_.micro_batches > 0 ? options_.micro_batches : 2 * stages_.count;
    return divided_mesh(meshes_.front(), static_cast<int>(std::min<std::int64_t>(wanted, samples)));
  }

  /// What is said of a graph's tensors. How variables lie must not depend on the number of samples.
  Specs specs(Graph& graph, const Mesh& divided) const {
    Specs specs(divided);
    specs.split_samples(graph, micro_batches_name);
    if (meshes_.front().size() > 1) {
      const std::string& samples = divided.axes().back().name;
      specs.split_samples(graph, samples);
      divide_updates(specs, graph, options_.update, samples);
    }
    return specs;
  }

  PipelineMesh mesh(const Mesh& divided) const { return {mesh_, meshes_, divided, divided.axis_size(0)}; }
  const Stages& stages() const { return stages_; }
  const Reductions& reductions() const { return reductions_; }

  void build(Graph& graph, std::int64_t samples, Graph& out) const {
    const PipelineMesh all = mesh(divided(samples));
    const Plan plan = make_plan(graph, specs(graph, all.divided));
    Pipeliner(graph, out, all, stages_, plan, reductions_).run();
  }

 private:
  Mesh mesh_;
  PipelineOptions options_;
  Axes axes_;
  Stages stages_;
  std::vector<Mesh> meshes_;  // by stage
  Reductions reductions_;
};

}  // namespace

Partitioned pipeline(Graph& graph, const Mesh& mesh, const PipelineOptions& options) {
  check_is_whole(graph);
  if (options.micro_batches < 0) {
    throw Error("pipeline", fmt::format("{} micro-batches were asked for", options.micro_batches));
  }
  if (options.partition.synchronize_batch_normalization) {
    throw Error("pipeline",
                "batch normalisation takes the statistics of a micro-batch and can't be synchronised",
                "data_parallel can do it");
  }
  const std::int64_t samples = batch_size(graph);
  if (samples < 1) throw Error("pipeline", "the graph's batch has no samples");
  const auto builder = std::make_shared<const Builder>(graph, mesh, options);
  const PipelineMesh all = builder->mesh(builder->divided(samples));
  auto data = std::make_unique<Partitioned::Data>(mesh, all.divided);
  data->from = &graph;
  data->plan = make_plan(graph, builder->specs(graph, all.divided));
  Pipeliner pipeliner(graph, data->graph, all, builder->stages(), data->plan, builder->reductions());
  pipeliner.run();
  data->versions = pipeliner.versions();
  data->roots = std::move(pipeliner.roots());
  data->graph.set_batch_recipe({samples, [&graph, builder](std::int64_t count, Graph& out) {
                                  Graph resized;
                                  with_batch_size(graph, count, resized);
                                  builder->build(resized, count, out);
                                }});
  return Partitioned(std::move(data));
}

}  // namespace purine::parallel
