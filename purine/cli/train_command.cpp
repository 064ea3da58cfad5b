#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_progress.h"
#include "purine/cli/launch.h"
#include "purine/cli/stop_on_signal.h"
#include "purine/core/error.h"
#include "purine/net/start_up.h"
#include "purine/session/agreement.h"
#include "purine/train/parallel_section.h"
#include "purine/train/progress.h"
#include "purine/train/trainer.h"

namespace purine::cli {
namespace {

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

std::unique_ptr<train::Listener> make_listener(io::TextOutput& output, const Launch& launch, bool json) {
  if (json) return std::make_unique<JsonProgress>(output);
  // A launcher may give its ranks a terminal when it has none itself.
  const bool terminal = launch.ranks() == 1 && ::isatty(STDOUT_FILENO) == 1;
  return std::make_unique<train::Progress>(output, train::Progress::Options{.terminal = terminal});
}

// A run folder lies at rank 0, and its job is that of all.
train::LoadedJob agree_on_job(const TrainRequest& request, Launch& launch, const Attempt& own) {
  Endpoint* endpoint = launch.endpoint();
  if (endpoint == nullptr) return own.get();
  const bool reads = launch.is_first() || request.job;
  at_all_ranks(endpoint, [&] {
    if (reads) own.get();
  });
  if (request.job) return own.get();
  const std::string text = endpoint->all_gather(reads ? train::job_text(own.get().job) : "").front();
  return reads ? own.get() : train::parse_job(text, *request.run_folder);
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

int train(const TrainRequest& request, Launch& launch, const Attempt& job, std::stop_token stop) {
  const train::LoadedJob loaded = agree_on_job(request, launch, job);
  const std::unique_ptr<Runtime> runtime = launch.make_runtime(loaded, request.run);
  io::TextOutput output(stdout);
  if (launch.endpoint() != nullptr) describe_ranks(launch, *runtime, loaded, output, request.json);
  std::unique_ptr<train::Listener> listener;
  if (launch.is_first()) listener = make_listener(output, launch, request.json);
  train::Trainer trainer(*runtime, loaded,
                         {.resume = request.resume,
                          .numbered_folder = request.new_run,
                          .stop_after = request.stop_after,
                          .stop = std::move(stop)});
  if (listener) trainer.add(*listener);
  const train::EndReport report = trainer.run();
  if (listener && report.end != train::RunEnd::finished) {
    listener->note(
        fmt::format("go on with: purine train --resume --run-folder {}", report.paths.folder.string()));
  }
  if (output.error_number() != 0 && !output.nobody_reads()) {
    throw Error("output",
                fmt::format("standard output cannot be written: {}", std::strerror(output.error_number())),
                fmt::format("the run itself is well, and lies in {}", report.paths.folder.string()));
  }
  if (!report.trace_error.empty()) {
    throw Error("trace", report.trace_error,
                fmt::format("the run itself is well, and lies in {}", report.paths.folder.string()));
  }
  return report.end == train::RunEnd::interrupted ? interrupted : success;
}

}  // namespace

int train(const TrainRequest& request) {
  const StopOnSignal stop;     // before the runtime's threads
  ::signal(SIGPIPE, SIG_IGN);  // that nobody reads along any more is no reason to lose a run
  const Attempt job([&] {
    const std::string target = request.job ? *request.job : *request.run_folder;
    return load_job(target, with_parallel_options(request.settings, request.run), request.run_folder);
  });
  Launch launch(job.stall_limit());
  return launch.run([&] { return train(request, launch, job, stop.token()); });
}

}  // namespace purine::cli
