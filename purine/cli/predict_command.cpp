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
#include "purine/train/predictor.h"

namespace purine::cli {
namespace {

void print_json(const std::string& image, const std::vector<train::Prediction>& predictions) {
  std::vector<JsonObject> classes;
  for (const train::Prediction& prediction : predictions) {
    classes.push_back(JsonObject()
                          .add("label", prediction.label)
                          .add("name", prediction.name)
                          .add("probability", prediction.probability));
  }
  print_line(JsonObject().add("image", image).add("classes", classes));
}

void print_text(const std::string& image, const std::vector<train::Prediction>& predictions) {
  fmt::print("{}\n", one_line(image));
  for (const train::Prediction& prediction : predictions) {
    fmt::print("  {:6.2f}%  {}\n", 100 * prediction.probability, one_line(prediction.name));
  }
}

}  // namespace

int predict(const PredictRequest& request) {
  std::error_code error;
  if (!std::filesystem::is_directory(request.run_folder, error)) {
    throw Error("run folder", "does not exist", "train a network first").at(request.run_folder);
  }
  const train::LoadedJob loaded = load_job(request.run_folder, {}, {});
  const std::filesystem::path path = train::find_checkpoint(request.run_folder, request.checkpoint);
  const io::Checkpoint checkpoint = io::load_checkpoint(path);
  const std::unique_ptr<Runtime> runtime = make_runtime(request.run, loaded.job.train.workers);
  train::Predictor predictor(*runtime, loaded.job, checkpoint, path, find_device(request.run));
  const std::int64_t complaints =
      predictor.predict(request.images, request.top, request.json ? print_json : print_text,
                        [](const Error& complaint) { print_error(complaint.what()); });
  return complaints == 0 ? success : failure;
}

}  // namespace purine::cli
