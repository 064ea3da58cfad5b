#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/graphviz.h"
#include "purine/cli/job_target.h"
#include "purine/core/error.h"
#include "purine/core/nearest.h"
#include "purine/io/atomic_file.h"
#include "purine/models/models.h"
#include "purine/train/network.h"

namespace purine::cli {
namespace {

bool is_file_or_folder(const std::string& target) {
  std::error_code error;
  return target.ends_with(".toml") || std::filesystem::exists(target, error);
}

void build_job(Graph& graph, const GraphRequest& request) {
  train::Job job = load_job(request.target, request.settings, {}).job;
  if (request.batch > 0) job.data.batch = job.data.evaluation_batch = request.batch;
  const data::DatasetPtr training_set = train::open_dataset(job, data::Subset::train);
  const train::Task task = train::find_task(job, *training_set);
  if (request.inference) {
    const Tensor image = graph.input(
        "image", {{job.data.batch, task.image.channels, task.image.height, task.image.width}, DType::f32});
    train::build_prediction(image, job, task.classes);
    return;
  }
  train::build_training(train::training_source(graph, job, training_set), job, task.classes,
                        train::steps_per_epoch(job, training_set->size()));
}

void build_model(Graph& graph, const GraphRequest& request) {
  std::vector<std::string> names;
  for (const models::Model& model : models::all_models()) names.emplace_back(model.name);
  if (std::find(names.begin(), names.end(), request.target) == names.end()) {
    const std::string_view meant = nearest(request.target, names);
    throw Error("command", "is neither a job file nor a model",
                meant.empty() ? fmt::format("models are {}", fmt::join(names, ", "))
                              : fmt::format("did you mean '{}'?", meant))
        .at(request.target);
  }
  if (!request.settings.empty()) {
    throw Error("command", "sets a key of a job, and a model has none", "name a job file")
        .at(request.settings.front().origin);
  }
  const models::Model& model = models::find_model(request.target);
  const std::int64_t batch = request.batch > 0 ? request.batch : 1;
  const auto [channels, height, width] = model.image;
  const Tensor image = graph.input("image", {{batch, channels, height, width}, DType::f32});
  train::Job job;
  job.model.name = request.target;
  if (request.inference) {
    train::build_prediction(image, job, model.classes);
    return;
  }
  const Tensor label = graph.input("label", {{batch}, DType::i64});
  train::build_training({image, label}, job, model.classes, 1);
}

std::string text_of(Graph& graph, GraphFormat format) {
  switch (format) {
    case GraphFormat::dot:
      return dot(graph);
    case GraphFormat::json:
      return json(graph);
    case GraphFormat::svg:
      return draw_svg(dot(graph));
    case GraphFormat::text:
      break;
  }
  return dump(graph);
}

}  // namespace

int graph(const GraphRequest& request) {
  Graph graph;
  if (is_file_or_folder(request.target)) {
    build_job(graph, request);
  } else {
    build_model(graph, request);
  }
  verify(graph);
  std::string text = text_of(graph, request.format);
  if (!text.ends_with('\n')) text += '\n';
  if (request.output) {
    io::write_file(*request.output, text);
  } else {
    fmt::print("{}", text);
  }
  return success;
}

}  // namespace purine::cli
