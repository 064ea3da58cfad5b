#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_progress.h"
#include "purine/cli/launch.h"
#include "purine/cli/run_report.h"
#include "purine/cli/stop_on_signal.h"
#include "purine/core/error.h"
#include "purine/core/shell_word.h"
#include "purine/io/background_output.h"
#include "purine/net/start_up.h"
#include "purine/train/parallel_section.h"
#include "purine/train/progress.h"
#include "purine/train/trainer.h"

namespace purine::cli {
namespace {

// That are traced for it where the job traces none.
constexpr std::int64_t steps_of_a_report = 5;

std::string ranks_json(const std::vector<net::RankDescription>& ranks) {
  std::vector<JsonObject> objects;
  for (const net::RankDescription& rank : ranks) {
    objects.push_back(JsonObject()
                          .add("host", rank.host)
                          .add("interface", rank.interface.name)
                          .add("address", rank.interface.address)
                          .add("devices", rank.devices)
                          .add("cores", rank.cores)
                          .add("bytes_per_s_to_next", rank.link.bytes_per_second)
                          .add("seconds_to_next", rank.link.latency));
  }
  return JsonObject().add("event", "ranks").add("ranks", std::span<const JsonObject>(objects)).text();
}

std::unique_ptr<io::TextOutput> make_output(const Launch& launch, const std::stop_token& stop) {
  if (launch.ranks() == 1) return std::make_unique<io::TextOutput>(stdout);
  return std::make_unique<io::BackgroundOutput>(stdout, stop);
}

std::unique_ptr<train::Listener> make_listener(io::TextOutput& output, const Launch& launch, bool json) {
  if (json) return std::make_unique<JsonProgress>(output);
  // A launcher may give its ranks a terminal when it has none itself.
  const bool terminal = launch.ranks() == 1 && ::isatty(STDOUT_FILENO) == 1;
  return std::make_unique<train::Progress>(output, train::Progress::Options{.terminal = terminal});
}

void describe_ranks(Launch& launch, const Runtime& runtime, const train::LoadedJob& loaded,
                    io::TextOutput& output, bool json) {
  Endpoint& endpoint = *launch.endpoint();
  const std::vector<Location> devices = train::parallel_setup(loaded, launch.ranks()).devices();
  const std::vector<net::RankDescription> ranks = net::learn_ranks(
      endpoint, train::local_devices_text(devices, runtime.rank()), net::own_cores(endpoint));
  if (!launch.is_first()) return;
  output.write(json ? ranks_json(ranks) + "\n" : net::ranks_table(ranks));
}

// The error of a file that nothing but a reader depends on.
Error with_good_news(const Error& error, const train::EndReport& report) {
  return Error(error.component(), error.message(),
               fmt::format("{}{}the run itself is well, and lies in {}", error.hint(),
                           error.hint().empty() ? "" : "; ", report.paths.folder.string()))
      .at(error.path());
}

int train(const TrainRequest& request, Launch& launch, const Attempt& job, const std::stop_token& stop) {
  const train::LoadedJob loaded = launch.agree_on(job, !request.job);
  const std::unique_ptr<Runtime> runtime = launch.make_runtime(loaded, request.run);
  const std::unique_ptr<io::TextOutput> stream = make_output(launch, stop);
  io::TextOutput& output = *stream;
  if (launch.endpoint() != nullptr) describe_ranks(launch, *runtime, loaded, output, request.json);
  std::unique_ptr<train::Listener> listener;
  if (launch.is_first()) listener = make_listener(output, launch, request.json);
  train::Trainer trainer(*runtime, loaded,
                         {.resume = request.resume,
                          .numbered_folder = request.new_run,
                          .stop_after = request.stop_after,
                          .stop = stop,
                          .links = launch.links()});
  if (listener) {
    trainer.add(*listener);
    launch.tell_waits([&](const std::string& text) { listener->note(text); });
  }
  const train::EndReport report = trainer.run();
  std::optional<Error> report_error;
  if (listener && request.report && report.trace) {
    try {
      const std::string path = write_run_report(report.paths.folder).string();
      if (!request.json) output.write(fmt::format("report         {}\n", path));
    } catch (const Error& error) {
      report_error = error;
    }
  }
  if (listener && report.end != train::RunEnd::finished) {
    listener->note(fmt::format("go on with: purine train --resume --run-folder {}",
                               shell_word(report.paths.folder.string())));
  }
  output.flush();
  if (output.error_number() != 0 && !output.nobody_reads()) {
    throw Error("output",
                fmt::format("standard output cannot be written: {}", std::strerror(output.error_number())),
                fmt::format("the run itself is well, and lies in {}", report.paths.folder.string()));
  }
  for (const std::optional<Error>& error :
       {report.trace_error, report.metrics_error, report.events_error, report_error}) {
    if (error) throw with_good_news(*error, report);
  }
  return report.end == train::RunEnd::interrupted ? interrupted : success;
}

}  // namespace

int train(const TrainRequest& request) {
  const StopOnSignal stop;     // before the runtime's threads
  ::signal(SIGPIPE, SIG_IGN);  // that nobody reads along any more is no reason to lose a run
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error as a full disk is
  const Attempt job([&] {
    const std::string target = request.job ? *request.job : *request.run_folder;
    train::LoadedJob loaded =
        load_job(target, with_parallel_options(request.settings, request.run), request.run_folder);
    if (request.report && loaded.job.trace.steps == 0) loaded.job.trace.steps = steps_of_a_report;
    return loaded;
  });
  Launch launch(job.stall_limit());
  return launch.run([&] { return train(request, launch, job, stop.token()); });
}

}  // namespace purine::cli
