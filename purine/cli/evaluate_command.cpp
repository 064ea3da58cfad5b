#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/cli/launch.h"
#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/one_line.h"
#include "purine/io/checkpoint.h"
#include "purine/session/agreement.h"
#include "purine/train/checkpoints.h"
#include "purine/train/evaluator.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/progress.h"
#include "purine/train/rank_reports.h"
#include "purine/train/state.h"

namespace purine::cli {
namespace {

struct Source {
  std::filesystem::path path;
  io::Checkpoint checkpoint;  // without tensors elsewhere than at rank 0
};

// Rank 0 reads the checkpoint, and tells the others what it is of.
Source read_checkpoint(const EvaluateRequest& request, const train::LoadedJob& loaded, Launch& launch) {
  using Json = nlohmann::json;
  Source source;
  at_all_ranks(launch.endpoint(), [&] {
    if (!launch.is_first()) return;
    source.path = train::find_checkpoint(loaded.job.train.run_folder, request.checkpoint);
    source.checkpoint = io::load_checkpoint(source.path);
    train::check_network(source.checkpoint.manifest, source.path, loaded.job);
  });
  if (launch.endpoint() == nullptr) return source;
  io::Manifest& manifest = source.checkpoint.manifest;
  const Json own = {source.path.string(), manifest.iteration, manifest.epoch, manifest.extra};
  const Json said = parse_json(launch.endpoint()->all_gather(own.dump()).front());
  source.path = said[0].get<std::string>();
  manifest.iteration = said[1];
  manifest.epoch = said[2];
  manifest.extra = said[3];
  return source;
}

// A checkpoint that was named may be the mistake as well as the images.
void check_images(const Source& source, const train::Task& task, const train::Job& job,
                  const data::Dataset& test_set) {
  const data::ImageSize image = train::test_image_size(job, test_set);
  if (image == task.image) return;
  throw Error("checkpoint",
              fmt::format("is of a network for images of {}, and the job makes test images of {}",
                          train::size_text(task.image), train::size_text(image)),
              "name a checkpoint of this job, or set crop and crop_size in [data]")
      .at(source.path.string());
}

void print_report(const EvaluateRequest& request, const train::ParallelSetup& setup,
                  const train::EvaluationReport& report, const std::filesystem::path& path,
                  const std::vector<data::SkippedImages::Entry>& skipped) {
  if (request.json) {
    JsonObject object;
    object.add("checkpoint", path.string())
        .add("scheme", setup.scheme->name)
        .add("step", report.step)
        .add("images", report.images)
        .add("loss", report.loss)
        .add("accuracy", report.accuracy);
    if (report.top5) object.add("top5", *report.top5);
    print_line(object.add("skipped_images", skipped.size()).add("seconds", report.seconds));
    return;
  }
  fmt::print("checkpoint     {}\n", one_line(path.string()));
  if (setup.is_divided()) fmt::print("devices        {}\n", setup.text());
  fmt::print("test accuracy  {} of {} (loss {:.4f})\n", train::percent_text(report.accuracy),
             counted_text(report.images, "image"), report.loss);
  if (report.top5) fmt::print("within first 5 {}\n", train::percent_text(*report.top5));
  for (const data::SkippedImages::Entry& entry : skipped) {
    fmt::print("left out {}: {}\n", one_line(entry.path), one_line(entry.reason));
  }
}

int evaluate(const EvaluateRequest& request, Launch& launch, const train::LoadedJob& loaded) {
  const Source source = read_checkpoint(request, loaded, launch);
  const train::Task task = train::task_of(source.checkpoint.manifest, source.path);
  const train::ParallelSetup setup = train::parallel_setup(loaded, launch.ranks());
  const std::unique_ptr<Runtime> runtime = launch.make_runtime(loaded, request.run);
  const auto skipped = std::make_shared<data::SkippedImages>();
  data::DatasetPtr test_set;
  at_all_ranks(launch.endpoint(), [&] {
    test_set = train::open_dataset(loaded.job, data::Subset::test);
    if (request.checkpoint) check_images(source, task, loaded.job, *test_set);
  });
  train::Evaluator evaluator(*runtime, setup, task, test_set, {.skipped = skipped});
  try {
    train::set_values(*runtime, evaluator.graph().variables(), evaluator.session().variables(),
                      source.checkpoint.tensors, true);
  } catch (const RemoteError&) {
    throw;
  } catch (const Error& error) {
    throw error.at(source.path.string());
  }
  const train::EvaluationReport report =
      *evaluator.run(source.checkpoint.manifest.iteration, source.checkpoint.manifest.epoch);
  const std::vector<data::SkippedImages::Entry> left_out =
      train::gather_skipped(*runtime, loaded.job, *skipped);
  if (launch.is_first()) print_report(request, setup, report, source.path, left_out);
  return success;
}

}  // namespace

int evaluate(const EvaluateRequest& request) {
  std::error_code error;
  const bool is_run = std::filesystem::is_directory(request.target, error);
  const Attempt job([&] { return load_job(request.target, request.settings, request.run_folder); });
  Launch launch(job.stall_limit());
  return launch.run([&] {
    train::LoadedJob loaded = launch.agree_on(job, is_run);
    const std::string& devices = request.run.devices;
    if (!devices.empty()) {
      loaded = train::with_devices(std::move(loaded), devices, "--devices " + devices, launch.ranks());
    }
    return train::locating_mistakes(loaded, [&] { return evaluate(request, launch, loaded); });
  });
}

}  // namespace purine::cli
