#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/json_object.h"
#include "purine/cli/output_path.h"
#include "purine/cli/progress_line.h"
#include "purine/cli/simulated_target.h"
#include "purine/core/amount_text.h"
#include "purine/core/one_line.h"
#include "purine/io/file.h"
#include "purine/trace/chrome_trace.h"
#include "purine/trace/read_traces.h"
#include "purine/trace/why.h"
#include "purine/train/parallel_section.h"
#include "purine/train/progress.h"
#include "purine/train/simulated_job.h"

namespace purine::cli {
namespace {

// Operators in all steps: what takes the most of more is not told unasked.
constexpr std::size_t most_explained = 500'000;

double milliseconds(std::int64_t nanoseconds, std::int64_t steps) {
  return static_cast<double>(nanoseconds) / 1e6 / static_cast<double>(steps);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void add_use(JsonObject& object, const sim::Overlap& use, std::int64_t steps) {
  const auto seconds = [&](std::int64_t nanoseconds) { return milliseconds(nanoseconds, steps) / 1e3; };
  object.add("transfer_seconds", seconds(use.moving))
      .add("overlapped_seconds", seconds(use.overlapped))
      .add("exposed_seconds", seconds(use.exposed()))
      .add("bytes", use.bytes / steps);
}

// Why a step takes so long, if it was traced.
trace::Explanation explain(const std::vector<trace::Trace>& traces, const sim::Cluster& cluster) {
  const trace::Timeline timeline(traces);
  return trace::explain(timeline, trace::critical_path(timeline),
                        {.network = sim::network_speed(cluster), .replay = false});
}

void print_json(const SimulateRequest& request, const train::SimulatedJob& job, const sim::Cluster& cluster,
                const train::SimulatedImages& images) {
  const sim::SimulationResult& result = job.result;
  const std::int64_t extents[] = {images.image.channels, images.image.height, images.image.width};
  std::vector<JsonObject> devices;
  for (const sim::DeviceUse& device : result.devices) {
    JsonObject object;
    object.add("device", device.location.text())
        .add("computing_seconds", milliseconds(device.use.computing, request.steps) / 1e3);
    add_use(object, device.use, request.steps);
    object.add("peak_bytes", device.peak_bytes).add("memory_bytes", device.memory_bytes);
    devices.push_back(std::move(object));
  }
  std::vector<JsonObject> links;
  for (const sim::LinkUse& link : result.links) {
    JsonObject object;
    object.add("link", link.name);
    add_use(object, link.use, request.steps);
    links.push_back(std::move(object));
  }
  std::vector<JsonObject> causes;
  for (const trace::Cause& cause : explain(result.traces, cluster).causes) {
    JsonObject object;
    object.add("what", cause.what).add("share", cause.share).add("text", cause.text).add("hint", cause.hint);
    causes.push_back(std::move(object));
  }
  JsonObject object;
  object.add("target", request.target.target)
      .add("cluster", cluster.name)
      .add("setup", job.setup)
      .add("device_count", job.devices.size())
      .add("batch", job.batch)
      .add("image", std::span<const std::int64_t>(extents))
      .add("classes", images.classes)
      .add("parameters", job.parameters)
      .add("step_seconds", result.step_seconds)
      .add("images_per_s", job.images_per_second);
  if (job.speed_up()) {
    object.add("one_device_images_per_s", *job.one_device_images_per_second)
        .add("speed_up", *job.speed_up())
        .add("efficiency", *job.speed_up() / static_cast<double>(job.devices.size()));
  }
  object.add("bytes_sent", result.bytes_sent)
      .add("messages", result.messages)
      .add("operators", result.operators)
      .add("measured_operators", result.measured)
      .add("computing_operators", result.computing)
      .add("executions", static_cast<std::int64_t>(result.executions))
      .add("divide_seconds", job.divide_seconds)
      .add("freeze_seconds", result.freeze_seconds)
      .add("simulate_seconds", result.simulate_seconds)
      .add("devices", std::span<const JsonObject>(devices))
      .add("links", std::span<const JsonObject>(links))
      .add("causes", std::span<const JsonObject>(causes));
  print_line(object);
}

// The first rows of a table, and how many more there are.
constexpr std::size_t most_rows = 16;

void print_rest(std::size_t rows) {
  if (rows > most_rows) fmt::print("… and {} more (--json tells all)\n", rows - most_rows);
}

void print_text(const SimulateRequest& request, const train::SimulatedJob& job, const sim::Cluster& cluster,
                const train::SimulatedImages& images) {
  const sim::SimulationResult& result = job.result;
  fmt::print("{}: {} parameters, batch {}, images {} x {} x {}, {} classes{}\n",
             one_line(request.target.target), count_text(job.parameters), job.batch, images.image.channels,
             images.image.height, images.image.width, images.classes,
             images.are_known ? "" : " (the data set isn't here: what the model is made for)");
  fmt::print("{}: {}\n", one_line(cluster.name), job.setup);
  fmt::print("\nstep {:.3f} ms, {:.2f} images/s", result.step_seconds * 1e3, job.images_per_second);
  if (job.speed_up()) {
    fmt::print(": {:.2f} times one device with its share of the batch ({:.2f}), efficiency {:.1f}%",
               *job.speed_up(), *job.one_device_images_per_second,
               100 * *job.speed_up() / static_cast<double>(job.devices.size()));
  }
  fmt::print("\n");
  if (result.messages > 0) {
    fmt::print("{} messages with {} between hosts in a step\n", count_text(result.messages),
               bytes_text(result.bytes_sent));
  }
  fmt::print("\n{:<20} {:>9} {:>12} {:>12} {:>12} {:>22}\n", "device", "computing", "transfers ms",
             "overlapped", "exposed", "memory");
  for (std::size_t i = 0; i < std::min(most_rows, result.devices.size()); ++i) {
    const sim::DeviceUse& device = result.devices[i];
    fmt::print(
        "{:<20} {:>8.1f}% {:>12.3f} {:>12.3f} {:>12.3f} {:>22}\n", device.location.text(),
        100 * share(device.use.computing, device.use.time), milliseconds(device.use.moving, request.steps),
        milliseconds(device.use.overlapped, request.steps), milliseconds(device.use.exposed(), request.steps),
        fmt::format("{} of {}", bytes_text(device.peak_bytes), bytes_text(device.memory_bytes)));
  }
  print_rest(result.devices.size());
  if (!result.links.empty()) {
    fmt::print("\n{:<20} {:>9} {:>12} {:>12} {:>12} {:>22}\n", "link", "busy", "busy ms", "overlapped",
               "exposed", "moved in a step");
  }
  for (std::size_t i = 0; i < std::min(most_rows, result.links.size()); ++i) {
    const sim::LinkUse& link = result.links[i];
    fmt::print("{:<20} {:>8.1f}% {:>12.3f} {:>12.3f} {:>12.3f} {:>22}\n", link.name,
               100 * share(link.use.moving, link.use.time), milliseconds(link.use.moving, request.steps),
               milliseconds(link.use.overlapped, request.steps),
               milliseconds(link.use.exposed(), request.steps), bytes_text(link.use.bytes / request.steps));
  }
  print_rest(result.links.size());
  if (result.traces.empty()) {
    fmt::print(
        "\nWhat takes the most of so many operators is told of a trace: --trace FILE, then purine why "
        "FILE\n");
  }
  fmt::print("{}", trace::causes_text(explain(result.traces, cluster)));
  if (request.target.costs) {
    fmt::print("\n{} of {} operators have measured costs\n",
               count_text(static_cast<std::int64_t>(result.measured)),
               count_text(static_cast<std::int64_t>(result.computing)));
  }
  fmt::print(
      "\nsimulated {} executions of {} operators in {:.2f} s, {:.2f} us each in the first half of the steps, "
      "{:.2f} us in the second; divided in {:.2f} s, frozen in {:.2f} s\n",
      count_text(static_cast<std::int64_t>(result.executions)),
      count_text(static_cast<std::int64_t>(result.operators)), result.simulate_seconds,
      1e6 * result.execution_seconds[0], 1e6 * result.execution_seconds[1], job.divide_seconds,
      result.freeze_seconds);
}

// One a rank, beside each other as those of a run. What ran can be simulated again.
void write_traces(const std::filesystem::path& path, const SimulateRequest& request,
                  const SimulatedTarget& target, std::vector<trace::Trace> traces) {
  train::Job job = target.loaded.job;
  job.parallel.devices = train::devices_text(train::parallel_setup(target.loaded).devices());
  const data::ImageSize& image = target.images.image;
  traces.front().run = {train::job_text(job),
                        io::read_file(request.target.cluster),
                        {image.channels, image.height, image.width},
                        target.images.classes};
  const auto begin_of = [](const trace::Trace& trace) {
    return trace.events.empty() ? std::numeric_limits<std::int64_t>::max() : trace.events.front().begin;
  };
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const trace::Trace& trace : traces) origin = std::min(origin, begin_of(trace));
  for (trace::Trace& trace : traces) {
    trace.about.emplace_back("cluster", target.cluster.name);
    trace.about.emplace_back("model", target.loaded.job.model.name);
    trace.about.emplace_back("batch", std::to_string(target.loaded.job.data.batch));
    trace.about.emplace_back("time", "simulated");
    trace::write_chrome_trace(trace::rank_file(path, trace.rank), trace, {.origin = origin});
  }
}

train::SimulatedJob run(const SimulatedTarget& target, train::SimulatedJobOptions options) {
  using Clock = std::chrono::steady_clock;
  ProgressLine line;
  line.show("dividing the graph");
  std::string current;
  Clock::time_point begin;
  options.simulation.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
    if (what != current) {
      current = what;
      begin = Clock::now();
    }
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    const double left = passed / static_cast<double>(done) * static_cast<double>(total - done);
    line.show(fmt::format("{}: {:.0f}%, {} left", what,
                          100.0 * static_cast<double>(done) / static_cast<double>(total),
                          train::duration_text(left)));
  };
  return train::simulate(target.loaded, target.images, target.cluster, options);
}

}  // namespace

int simulate(const SimulateRequest& request) {
  if (request.trace) {
    check_outputs("purine simulate", std::array{Output{"--trace", *request.trace}}, files_of(request.target));
  }
  const SimulatedTarget target = load_simulated_target(request.target);
  train::SimulatedJobOptions options;
  options.simulation.steps = request.steps;
  options.simulation.warm_up = request.warm_up;
  options.simulation.costs = target.costs ? &*target.costs : nullptr;
  options.simulation.workers = request.target.run.workers;
  options.simulation.barrier = request.barrier;
  options.simulation.priorities = !request.no_priorities;
  options.simulation.trace = true;
  if (!request.trace) options.simulation.most_traced = most_explained;
  const train::SimulatedJob job = run(target, options);
  if (request.trace) write_traces(*request.trace, request, target, job.result.traces);
  if (request.json) {
    print_json(request, job, target.cluster, target.images);
  } else {
    print_text(request, job, target.cluster, target.images);
  }
  return success;
}

}  // namespace purine::cli
