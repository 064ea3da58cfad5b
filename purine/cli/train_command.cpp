#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_progress.h"
#include "purine/cli/stop_on_signal.h"
#include "purine/session/runtime.h"
#include "purine/train/progress.h"
#include "purine/train/trainer.h"

namespace purine::cli {
namespace {

std::unique_ptr<train::Listener> make_listener(bool json) {
  if (json) return std::make_unique<JsonProgress>();
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return std::make_unique<train::Progress>(stdout, train::Progress::Options{.terminal = terminal});
}

}  // namespace

int train(const TrainRequest& request) {
  const StopOnSignal stop;  // before the runtime's threads
  const std::string target = request.job ? *request.job : *request.run_folder;
  train::LoadedJob loaded = load_job(target, request.settings, request.run_folder);
  const std::unique_ptr<Runtime> runtime = make_runtime(request.run, loaded.job.train.workers);

  const std::unique_ptr<train::Listener> listener = make_listener(request.json);
  train::Trainer trainer(*runtime, std::move(loaded),
                         {.device = find_device(request.run),
                          .resume = request.resume,
                          .numbered_folder = request.new_run,
                          .stop_after = request.stop_after,
                          .stop = stop.token()});
  trainer.add(*listener);
  const train::EndReport report = trainer.run();
  if (report.end == train::RunEnd::finished) return success;
  listener->note(
      fmt::format("go on with: purine train --resume --run-folder {}", report.paths.folder.string()));
  return report.end == train::RunEnd::interrupted ? interrupted : success;
}

}  // namespace purine::cli
