#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/core/error.h"
#include "purine/models/models.h"
#include "purine/session/session.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/placed_graph.h"
#include "purine/train/progress.h"
#include "purine/train/step_trace.h"

namespace purine::cli {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Seconds a step, for each of a few blocks of steps. A block is timed from when nothing runs until nothing
// runs again: the moments at which single steps reach the host say little while later ones are under way.
std::vector<double> run(Session& session, const BenchRequest& request) {
  constexpr std::int64_t most_blocks = 8;
  if (request.warm_up > 0) session.run_steps(request.warm_up);
  std::vector<double> seconds;
  const std::int64_t blocks = std::min(most_blocks, request.steps);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t steps = request.steps * (block + 1) / blocks - request.steps * block / blocks;
    const Clock::time_point begin = Clock::now();
    session.run_steps(steps);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() /
                      static_cast<double>(steps));
  }
  return seconds;
}

}  // namespace

int bench(const BenchRequest& request) {
  const models::Model& model = [&]() -> const models::Model& {
    try {
      return models::find_model(request.model);
    } catch (const Error& error) {
      throw Error("command", error.message(), error.hint()).at("purine bench");
    }
  }();
  const data::ImageSize image = request.image.empty()
                                    ? data::ImageSize{model.image[0], model.image[1], model.image[2]}
                                    : data::ImageSize{request.image[0], request.image[1], request.image[2]};
  const std::int64_t classes = request.classes > 0 ? request.classes : model.classes;

  train::LoadedJob loaded = model_job(request.model, with_parallel_options({}, request.run));
  loaded.job.optimizer.learning_rate = 0.001;
  loaded.job.train.convolutions = request.convolutions;
  const train::ParallelSetup setup = train::parallel_setup(loaded);
  const std::unique_ptr<Runtime> runtime = make_runtime(loaded, request.run);
  const auto build = [&](Graph& graph, Location device) {
    const data::Batch batch = data::synthetic(graph, {.batch = request.batch,
                                                      .image = image,
                                                      .classes = classes,
                                                      .seed = static_cast<std::uint64_t>(request.seed)});
    if (request.inference) {
      train::build_prediction(batch.image, loaded.job, classes, device);
    } else {
      train::build_training(batch, loaded.job, classes, 1, device);
    }
  };
  train::PlacedGraph placed = [&] {
    try {
      return train::PlacedGraph(setup, build);
    } catch (const train::JobMistake& mistake) {
      throw Error("command", "the model " + mistake.text(), "--image sets their size").at("purine bench");
    }
  }();
  Graph& graph = placed.written();
  std::optional<train::StepTrace> trace;
  SessionOptions options;
  options.seed = static_cast<std::uint64_t>(request.seed);
  if (request.trace) {
    trace.emplace(request.warm_up, request.warm_up + request.steps, 1000, *runtime);
    options.trace = trace->hook();
  }
  Session session(*runtime, placed.running(), options);
  const std::vector<double> seconds = run(session, request);
  if (trace) trace->write(*request.trace);

  const auto images = static_cast<double>(request.batch);
  const double median_rate = images / median(seconds);
  const double best_rate = images / *std::min_element(seconds.begin(), seconds.end());
  if (request.json) {
    const std::int64_t extents[] = {image.channels, image.height, image.width};
    std::vector<std::string> devices;
    for (const Location& device : setup.devices()) devices.push_back(device.text());
    print_line(JsonObject()
                   .add("model", request.model)
                   .add("batch", request.batch)
                   .add("steps", request.steps)
                   .add("image", std::span<const std::int64_t>(extents))
                   .add("classes", classes)
                   .add("parameters", train::parameter_count(graph))
                   .add("inference", request.inference)
                   .add("devices", std::span<const std::string>(devices))
                   .add("scheme", setup.scheme->name)
                   .add("mesh", setup.mesh.text())
                   .add("workers", runtime->workers())
                   .add("images_per_s_median", median_rate)
                   .add("images_per_s_best", best_rate)
                   .add("peak_bytes", session.peak_bytes()));
    return success;
  }
  fmt::print("{}: {} parameters, batch {}, images {} x {} x {}, {} worker{}, {} of memory\n", request.model,
             train::count_text(train::parameter_count(graph)), request.batch, image.channels, image.height,
             image.width, runtime->workers(), runtime->workers() == 1 ? "" : "s",
             train::bytes_text(session.peak_bytes()));
  if (setup.is_divided()) fmt::print("{} devices: {}\n", setup.devices().size(), setup.text());
  fmt::print("{:.2f} images/s median, {:.2f} best, over {} steps\n", median_rate, best_rate, request.steps);
  return success;
}

}  // namespace purine::cli
