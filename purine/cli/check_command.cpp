#include <fmt/format.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/cli/launch.h"
#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/core/one_line.h"
#include "purine/session/agreement.h"
#include "purine/session/session.h"
#include "purine/train/evaluator.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/placed_graph.h"
#include "purine/train/progress.h"
#include "purine/train/scheme_check.h"
#include "purine/train/step_error.h"

namespace purine::cli {
namespace {

constexpr const char* devices_to_compare = "emu:0-3";  // where the job has none

std::vector<std::string> texts_of(const std::vector<Location>& devices) {
  std::vector<std::string> texts;
  for (const Location& device : devices) texts.push_back(device.text());
  return texts;
}

JsonObject json_of(const train::SchemeResult& result) {
  return JsonObject()
      .add("scheme", result.scheme)
      .add("mesh", result.mesh)
      .add("details", result.details)
      .add("largest_difference", result.difference)
      .add("tolerance", result.tolerance)
      .add("variable", result.variable)
      .add("replicas_are_equal", result.unequal_replica.empty())
      .add("impossible", result.impossible)
      .add("passed", result.passed());
}

void print(const train::SchemeResult& result) {
  std::string name = result.mesh;
  if (!result.details.empty()) name += ", " + result.details;
  if (!result.ran()) {
    fmt::print("{:<8} {:<32} not with this network: {}\n", result.scheme, name, result.impossible);
    return;
  }
  std::string verdict = "ok";
  if (!result.unequal_replica.empty()) {
    verdict = fmt::format("{} is not the same on all devices", result.unequal_replica);
  } else if (!result.passed()) {
    verdict = fmt::format("too much, at {}", result.variable);
  }
  fmt::print("{:<8} {:<32} {:>9.1e} of {:.1e}  {}\n", result.scheme, name, result.difference,
             result.tolerance, verdict);
  std::fflush(stdout);
}

int check_schemes(const CheckRequest& request, train::LoadedJob loaded) {
  if (train::parallel_setup(loaded, 1).devices().size() < 2 && request.run.devices.empty()) {
    loaded = train::with_devices(std::move(loaded), devices_to_compare, "parallel.devices");
  }
  const std::vector<Location> devices = train::parallel_setup(loaded).devices();
  const std::unique_ptr<Runtime> runtime = make_runtime(loaded, request.run);
  train::SchemeCheckOptions options;
  options.steps = request.steps.value_or(options.steps);
  options.in_double = request.in_double;
  train::SchemeCheck check(*runtime, std::move(loaded), options);
  const train::Job& job = check.job().job;
  if (!request.json) {
    fmt::print("{}, {} with {}{}: the largest difference from {}, and what it may be\n", job.model.name,
               counted_text(options.steps, "step"), job.optimizer.name,
               options.in_double ? " in double precision" : "", devices.front().text());
    for (const std::string& note : check.notes()) fmt::print("note: {}\n", note);
  }
  std::vector<JsonObject> objects;
  const bool passed = check.run([&](const train::SchemeResult& result) {
    objects.push_back(json_of(result));
    if (!request.json) print(result);
  });
  if (request.json) {
    const std::vector<std::string> texts = texts_of(devices);
    print_line(JsonObject()
                   .add("model", job.model.name)
                   .add("steps", options.steps)
                   .add("precision", options.in_double ? "double" : "single")
                   .add("optimizer", job.optimizer.name)
                   .add("devices", std::span<const std::string>(texts))
                   .add("notes", std::span<const std::string>(check.notes()))
                   .add("schemes", std::span<const JsonObject>(objects))
                   .add("passed", passed));
  }
  return passed ? success : failure;
}

// Of all devices, whichever rank they are at.
std::vector<std::int64_t> peak_bytes(const Session& session, const std::vector<Location>& devices,
                                     Launch& launch) {
  std::string own;
  for (const Location& device : devices) own += std::to_string(session.peak_bytes(device)) + " ";
  const std::vector<std::string> all =
      launch.endpoint() != nullptr ? launch.endpoint()->all_gather(own) : std::vector<std::string>{own};
  std::vector<std::int64_t> bytes(devices.size());
  for (const std::string& text : all) {
    std::istringstream numbers(text);
    for (std::int64_t& sum : bytes) {
      std::int64_t number = 0;
      numbers >> number;
      sum += number;
    }
  }
  return bytes;
}

int check_job(const CheckRequest& request, Launch& launch, const train::LoadedJob& loaded) {
  const train::Job& job = loaded.job;
  const train::ParallelSetup setup = train::parallel_setup(loaded, launch.ranks());
  const std::unique_ptr<Runtime> runtime = launch.make_runtime(loaded, request.run);
  data::DatasetPtr training_set;
  data::DatasetPtr test_set;
  train::Task task;
  at_all_ranks(launch.endpoint(), [&] {
    training_set = train::open_dataset(job, data::Subset::train);
    test_set = train::open_dataset(job, data::Subset::test);
    task = train::find_task(job, *training_set);
  });
  const std::int64_t steps_per_epoch = train::steps_per_epoch(job, training_set->size());
  train::TrainingTensors tensors;
  train::PlacedGraph graph(setup, [&](Graph& written, Location device) {
    tensors = train::build_training(train::training_source(written, job, training_set), job, task.classes,
                                    steps_per_epoch, device);
  });
  SessionOptions options;
  options.seed = static_cast<std::uint64_t>(job.train.seed);
  Session session(*runtime, graph.running(), options);
  const train::Evaluator evaluator(*runtime, setup, task, test_set,
                                   {.training = &graph, .variables = session.shared_variables()});
  const std::int64_t steps = request.steps.value_or(1);
  std::optional<double> loss;
  if (steps > 0) {
    const Tensor read = graph.at(tensors.loss);
    for (const Step& step : session.run({.steps = steps})) {
      if (step.has(read)) loss = step.value(read);
    }
    session.drain();
  }
  const std::vector<std::int64_t> peaks = peak_bytes(session, setup.devices(), launch);
  if (!launch.is_first()) return success;

  std::vector<JsonObject> places;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    places.push_back(JsonObject().add("device", setup.devices()[i].text()).add("peak_bytes", peaks[i]));
  }
  if (request.json) {
    JsonObject object;
    object.add("model", job.model.name)
        .add("parameters", train::parameter_count(graph.written()))
        .add("training_images", training_set->size())
        .add("test_images", test_set->size())
        .add("classes", task.classes)
        .add("steps_per_epoch", steps_per_epoch)
        .add("total_steps", train::total_steps(job, steps_per_epoch))
        .add("scheme", setup.scheme->name)
        .add("mesh", setup.mesh.text())
        .add("devices", std::span<const JsonObject>(places))
        .add("operators", static_cast<std::int64_t>(graph.running().operator_count()))
        .add("steps", steps);
    if (loss) object.add("loss", *loss);
    print_line(object);
    return success;
  }
  fmt::print("{}: {} with {} parameters; {} training and {} test images, {} classes\n", one_line(loaded.name),
             job.model.name, count_text(train::parameter_count(graph.written())),
             count_text(training_set->size()), count_text(test_set->size()), count_text(task.classes));
  fmt::print("{}, {} an epoch; on {}\n", counted_text(train::total_steps(job, steps_per_epoch), "step"),
             count_text(steps_per_epoch), setup.text());
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    fmt::print("  {}: {} of memory\n", setup.devices()[i].text(), bytes_text(peaks[i]));
  }
  if (loss) fmt::print("{} ran; loss {:.4f}\n", counted_text(steps, "step"), *loss);
  return success;
}

}  // namespace

int check(const CheckRequest& request) {
  if (request.schemes && request.steps == 0) {
    throw Error("command", "--steps 0 compares nothing", "give at least 1").at("purine check");
  }
  const Attempt job(
      [&] { return load_job(request.job, with_parallel_options(request.settings, request.run), {}); });
  Launch launch(job.stall_limit());
  return launch.run([&] {
    at_all_ranks(launch.endpoint(), [&] {
      if (!request.schemes || launch.ranks() == 1) return;
      throw Error("command",
                  fmt::format("--schemes compares in one process, and there are {}", launch.ranks()),
                  "start it without mpirun, with --devices for as many devices")
          .at("purine check");
    });
    const train::LoadedJob loaded = launch.agree_on(job, false);
    try {
      return train::locating_mistakes(loaded, [&] {
        return request.schemes ? check_schemes(request, loaded) : check_job(request, launch, loaded);
      });
    } catch (const IterationError& error) {
      throw train::step_error(error);
    } catch (const RemoteError& error) {
      throw train::step_error(error, 0);
    }
  });
}

}  // namespace purine::cli
