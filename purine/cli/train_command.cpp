#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_progress.h"
#include "purine/cli/stop_on_signal.h"
#include "purine/core/error.h"
#include "purine/train/progress.h"
#include "purine/train/trainer.h"

namespace purine::cli {
namespace {

std::unique_ptr<train::Listener> make_listener(io::TextOutput& output, bool json) {
  if (json) return std::make_unique<JsonProgress>(output);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return std::make_unique<train::Progress>(output, train::Progress::Options{.terminal = terminal});
}

}  // namespace

int train(const TrainRequest& request) {
  const StopOnSignal stop;     // before the runtime's threads
  ::signal(SIGPIPE, SIG_IGN);  // that nobody reads along any more is no reason to lose a run
  const std::string target = request.job ? *request.job : *request.run_folder;
  const train::LoadedJob loaded =
      load_job(target, with_parallel_options(request.settings, request.run), request.run_folder);
  const std::unique_ptr<Runtime> runtime = make_runtime(loaded, request.run);

  io::TextOutput output(stdout);
  const std::unique_ptr<train::Listener> listener = make_listener(output, request.json);
  train::Trainer trainer(*runtime, loaded,
                         {.resume = request.resume,
                          .numbered_folder = request.new_run,
                          .stop_after = request.stop_after,
                          .stop = stop.token()});
  trainer.add(*listener);
  const train::EndReport report = trainer.run();
  if (report.end != train::RunEnd::finished) {
    listener->note(
        fmt::format("go on with: purine train --resume --run-folder {}", report.paths.folder.string()));
  }
  if (output.error_number() != 0 && !output.nobody_reads()) {
    throw Error("output",
                fmt::format("standard output cannot be written: {}", std::strerror(output.error_number())),
                fmt::format("the run itself is well, and lies in {}", report.paths.folder.string()));
  }
  return report.end == train::RunEnd::interrupted ? interrupted : success;
}

}  // namespace purine::cli
