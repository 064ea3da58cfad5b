#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/core/error.h"
#include "purine/core/one_line.h"
#include "purine/io/checkpoint.h"
#include "purine/train/checkpoints.h"
#include "purine/train/parallel_section.h"
#include "purine/train/predictor.h"

namespace purine::cli {
namespace {

void print_prediction_as_json(const std::string& image, const std::vector<train::Prediction>& predictions) {
  std::vector<JsonObject> classes;
  for (const train::Prediction& prediction : predictions) {
    classes.push_back(JsonObject()
                          .add("label", prediction.label)
                          .add("name", prediction.name)
                          .add("probability", prediction.probability));
  }
  print_line(JsonObject().add("image", image).add("classes", classes));
}

void print_prediction(const std::string& image, const std::vector<train::Prediction>& predictions) {
  fmt::print("{}\n", one_line(image));
  for (const train::Prediction& prediction : predictions) {
    fmt::print("  {:6.2f}%  {}\n", 100 * prediction.probability, one_line(prediction.name));
  }
}

}  // namespace

int predict(const PredictRequest& request) {
  std::error_code error;
  if (!std::filesystem::is_directory(request.run_folder, error)) {
    const bool exists = std::filesystem::exists(request.run_folder, error);
    throw Error("run folder", exists ? "is not a folder" : "does not exist",
                exists ? "name the run's folder" : "train a network first")
        .at(request.run_folder);
  }
  train::LoadedJob loaded = load_job(request.run_folder, {}, {});
  const std::string& wanted = request.run.devices;
  const std::string first = train::parallel_setup(loaded).devices().front().text();
  loaded = train::with_devices(std::move(loaded), wanted.empty() ? first : wanted,
                               wanted.empty() ? "parallel.devices" : "--devices " + wanted);
  const std::vector<Location> devices = train::parallel_setup(loaded).devices();
  if (devices.size() > 1) {
    throw Error("command", fmt::format("prediction runs on one device, got {}", devices.size()), "name one")
        .at("--devices " + wanted);
  }
  const std::filesystem::path path = train::find_checkpoint(request.run_folder, request.checkpoint);
  const io::Checkpoint checkpoint = io::load_checkpoint(path);
  const std::unique_ptr<Runtime> runtime = make_runtime(loaded, request.run);
  train::Predictor predictor(*runtime, loaded.job, checkpoint, path, devices.front());
  const std::int64_t complaints = predictor.predict(
      request.images, request.top, request.json ? print_prediction_as_json : print_prediction,
      [](const Error& complaint) { print_error(complaint.what()); });
  return complaints == 0 ? success : failure;
}

}  // namespace purine::cli
