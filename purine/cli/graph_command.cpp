#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/graphviz.h"
#include "purine/cli/job_target.h"
#include "purine/cli/output_path.h"
#include "purine/core/error.h"
#include "purine/graph/dot.h"
#include "purine/io/atomic_file.h"
#include "purine/models/models.h"
#include "purine/session/runtime.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/placed_graph.h"

namespace purine::cli {
namespace {

bool is_file_or_folder(const std::string& target) {
  std::error_code error;
  return target.ends_with(".toml") || std::filesystem::exists(target, error);
}

using Build = train::PlacedGraph::Build;

train::LoadedJob with_batch(train::LoadedJob loaded, std::int64_t batch) {
  if (batch > 0) {
    loaded.job.data.batch = loaded.job.data.evaluation_batch = batch;
    loaded.origins["data.batch"] = fmt::format("--batch {}", batch);
  }
  return loaded;
}

Build prediction(const train::Job& job, const data::ImageSize& image, std::int64_t classes) {
  return [=](Graph& graph, Location device) {
    const Shape shape = {job.data.batch, image.channels, image.height, image.width};
    train::build_prediction(graph.input("image", {shape, DType::f32}), job, classes, device);
  };
}

train::PlacedGraph build_job(const GraphRequest& request, const train::LoadedJob& loaded) {
  const train::Job& job = loaded.job;
  const data::DatasetPtr training_set = train::open_dataset(job, data::Subset::train);
  const train::Task task = train::find_task(job, *training_set);
  const auto training = [&](Graph& graph, Location device) {
    train::build_training(train::training_source(graph, job, training_set), job, task.classes,
                          train::steps_per_epoch(job, training_set->size()), device);
  };
  train::PlacedGraph placed(train::parallel_setup(loaded),
                            request.inference ? prediction(job, task.image, task.classes) : Build(training));
  if (job.train.memory_limit > 0 && !request.inference) {
    Runtime runtime({.workers = static_cast<int>(job.train.workers)});
    SessionOptions options;
    placed.fit_memory(runtime, static_cast<std::size_t>(job.train.memory_limit * 1e6), options);
  }
  return placed;
}

const models::Model& find_model(const std::string& target) {
  try {
    return models::find_model(target);
  } catch (const Error& error) {
    throw Error("command", "is neither a job file nor a model", error.hint()).at(target);
  }
}

train::PlacedGraph build_model(const GraphRequest& request) {
  const models::Model& model = find_model(request.target);
  if (!request.settings.empty()) {
    throw Error("command", "sets a key of a job, and a model has none", "name a job file")
        .at(request.settings.front().origin);
  }
  const train::LoadedJob loaded =
      with_batch(model_job(request.target, with_parallel_options({}, request.run)),
                 std::max<std::int64_t>(request.batch, 1));
  const train::Job& job = loaded.job;
  const data::ImageSize image{model.image[0], model.image[1], model.image[2]};
  const auto training = [&](Graph& graph, Location device) {
    const Shape shape = {job.data.batch, image.channels, image.height, image.width};
    const Tensor images = graph.input("image", {shape, DType::f32});
    const Tensor labels = graph.input("label", {{job.data.batch}, DType::i64});
    train::build_training({images, labels}, job, model.classes, 1, device);
  };
  return {train::parallel_setup(loaded),
          request.inference ? prediction(job, image, model.classes) : Build(training)};
}

// What a drawing has room for, unless the command says how much: more and more of these, up to where it would
// be wider than can be read. A chain of many boxes can be, and as many beside each other can't.
constexpr std::array<std::int64_t, 6> vertices_of_a_drawing = {20, 30, 45, 60, 90, 120};
constexpr double widest_drawing = 2700;  // points

std::string draw(Graph& graph, std::int64_t most_vertices) {
  return draw_svg(dot(graph, {.most_vertices = static_cast<std::size_t>(most_vertices)}));
}

std::string draw_as_it_can_be_read(Graph& graph) {
  std::string svg = draw(graph, vertices_of_a_drawing.front());
  for (const std::int64_t most : std::span(vertices_of_a_drawing).subspan(1)) {
    std::string larger = draw(graph, most);
    if (svg_width(larger) > widest_drawing) break;
    svg = std::move(larger);
  }
  return svg;
}

std::string text_of(Graph& graph, const GraphRequest& request) {
  switch (request.format.value_or(GraphFormat::text)) {
    case GraphFormat::dot:
      return dot(graph, {.most_vertices = static_cast<std::size_t>(request.most_vertices.value_or(0))});
    case GraphFormat::json:
      return json(graph);
    case GraphFormat::svg:
      return request.most_vertices ? draw(graph, *request.most_vertices) : draw_as_it_can_be_read(graph);
    case GraphFormat::text:
      break;
  }
  return dump(graph);
}

}  // namespace

int graph(const GraphRequest& request) {
  const bool is_drawn = request.format == GraphFormat::svg || request.format == GraphFormat::dot;
  if (request.most_vertices && !is_drawn) {
    throw Error("command", "--vertices is of drawings", "take --svg or --format dot with it")
        .at("purine graph");
  }
  if (request.output) {
    check_outputs("purine graph", std::array{Output{"--output", *request.output}},
                  std::array{std::filesystem::path(request.target)});
  }
  train::PlacedGraph placed = [&] {
    if (!is_file_or_folder(request.target)) return build_model(request);
    const train::LoadedJob loaded = with_batch(
        load_job(request.target, with_parallel_options(request.settings, request.run), {}), request.batch);
    return train::locating_mistakes(loaded, [&] { return build_job(request, loaded); });
  }();
  Graph& graph = placed.running();
  verify(graph);
  std::string text = text_of(graph, request);
  if (!text.ends_with('\n')) text += '\n';
  if (request.output) {
    io::write_file(*request.output, text);
  } else {
    fmt::print("{}", text);
  }
  return success;
}

}  // namespace purine::cli
