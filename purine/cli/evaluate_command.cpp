#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/core/error.h"
#include "purine/core/one_line.h"
#include "purine/io/checkpoint.h"
#include "purine/train/checkpoints.h"
#include "purine/train/evaluator.h"
#include "purine/train/job_mistake.h"
#include "purine/train/progress.h"
#include "purine/train/state.h"

namespace purine::cli {
namespace {

int evaluate(const EvaluateRequest& request, const train::LoadedJob& loaded) {
  const train::Job& job = loaded.job;
  const std::filesystem::path path = train::find_checkpoint(job.train.run_folder, request.checkpoint);
  const io::Checkpoint checkpoint = io::load_checkpoint(path);
  const train::Task task = train::task_of(checkpoint.manifest, path);

  const train::ParallelSetup setup = train::parallel_setup(loaded);
  const std::unique_ptr<Runtime> runtime = make_runtime(loaded, request.run);
  const auto skipped = std::make_shared<data::SkippedImages>();
  train::Evaluator evaluator(*runtime, setup, task, train::open_dataset(job, data::Subset::test),
                             {.skipped = skipped});
  try {
    train::set_values(*runtime, evaluator.graph().variables(), evaluator.session().variables(),
                      checkpoint.tensors, true);
  } catch (const Error& error) {
    throw error.at(path.string());
  }
  const train::EvaluationReport report =
      *evaluator.run(checkpoint.manifest.iteration, checkpoint.manifest.epoch);

  if (request.json) {
    JsonObject object;
    object.add("checkpoint", path.string())
        .add("scheme", setup.scheme->name)
        .add("step", report.step)
        .add("images", report.images)
        .add("loss", report.loss)
        .add("accuracy", report.accuracy);
    if (report.top5) object.add("top5", *report.top5);
    print_line(object.add("skipped_images", skipped->count()).add("seconds", report.seconds));
    return success;
  }
  fmt::print("checkpoint     {}\n", one_line(path.string()));
  if (setup.is_divided()) fmt::print("devices        {}\n", setup.text());
  fmt::print("test accuracy  {} of {} images (loss {:.4f})\n", train::percent_text(report.accuracy),
             train::count_text(report.images), report.loss);
  if (report.top5) fmt::print("within first 5 {}\n", train::percent_text(*report.top5));
  for (const data::SkippedImages::Entry& entry : skipped->entries()) {
    fmt::print("left out {}: {}\n", one_line(entry.path), one_line(entry.reason));
  }
  return success;
}

}  // namespace

int evaluate(const EvaluateRequest& request) {
  train::LoadedJob loaded = load_job(request.target, request.settings, request.run_folder);
  if (!request.run.devices.empty()) {
    loaded = train::with_devices(std::move(loaded), request.run.devices, "--devices " + request.run.devices);
  }
  return train::locating_mistakes(loaded, [&] { return evaluate(request, loaded); });
}

}  // namespace purine::cli
