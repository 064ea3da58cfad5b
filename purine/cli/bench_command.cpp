#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "purine/backend/cpu/machine_probe.h"
#include "purine/cli/bench_operators.h"
#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/cli/json_object.h"
#include "purine/cli/json_progress.h"
#include "purine/cli/launch.h"
#include "purine/cli/output_path.h"
#include "purine/cli/run_report.h"
#include "purine/core/amount_text.h"
#include "purine/core/error.h"
#include "purine/io/atomic_file.h"
#include "purine/models/models.h"
#include "purine/session/agreement.h"
#include "purine/session/gather_values.h"
#include "purine/session/session.h"
#include "purine/trace/transfer_meter.h"
#include "purine/train/dispatcher_meter.h"
#include "purine/train/job_mistake.h"
#include "purine/train/network.h"
#include "purine/train/operator_meter.h"
#include "purine/train/placed_graph.h"
#include "purine/train/progress.h"
#include "purine/train/run_description.h"
#include "purine/train/run_prediction.h"
#include "purine/train/scheduling_report.h"
#include "purine/train/step_trace.h"

namespace purine::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct TimedSteps {
  std::vector<double> seconds;     // a step, for each of a few blocks of steps
  trace::TransferUsage transfers;  // in all of them, where there are other ranks
};

// The first step of a block, and the one after its last.
std::int64_t block_begin(std::int64_t block, std::int64_t blocks, std::int64_t steps) {
  return steps * block / blocks;
}

// On one device a block is timed from when nothing runs until nothing runs again: the moments at which single
// steps end say little while later ones are under way. Steps that are traced are one block: they overlap as
// in training.
TimedSteps run_on_one_device(Session& session, const BenchRequest& request, bool is_traced) {
  const std::int64_t blocks = is_traced ? 1 : std::clamp<std::int64_t>(request.steps, 1, 8);
  if (request.warm_up > 0) session.run_steps(request.warm_up);
  TimedSteps timed;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t steps =
        block_begin(block + 1, blocks, request.steps) - block_begin(block, blocks, request.steps);
    const Clock::time_point begin = Clock::now();
    session.run_steps(steps);
    timed.seconds.push_back(seconds_since(begin) / static_cast<double>(steps));
  }
  return timed;
}

// Where devices exchange data, the end of a run hides little of it: a step is the time from when one has
// ended to when the next one has, with others under way before and after. So the run goes on for a step more
// than count, and blocks are longer.
TimedSteps run_on_devices(Session& session, const BenchRequest& request, trace::TransferMeter* meter) {
  const std::int64_t all = request.warm_up + request.steps + 1;
  TimedSteps timed;
  trace::TransferUsage before;
  std::vector<Clock::time_point> ends;  // of the step before those that count, and of those
  const auto note_end = [&] {
    ends.push_back(Clock::now());
    if (meter == nullptr) return;
    if (ends.size() == 1) before = meter->usage();
    timed.transfers = meter->usage().since(before);
  };
  if (meter != nullptr) meter->reset();
  if (request.warm_up == 0) note_end();
  std::int64_t ended = 0;
  for ([[maybe_unused]] const Step& step : session.run({.steps = all})) {
    ++ended;
    if (ended >= request.warm_up && ended < all) note_end();
  }
  const std::int64_t blocks = std::clamp<std::int64_t>(request.steps / 8, 1, 4);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block_begin(block, blocks, request.steps);
    const std::int64_t last = block_begin(block + 1, blocks, request.steps);
    const std::chrono::duration<double> seconds =
        ends.at(static_cast<std::size_t>(last)) - ends.at(static_cast<std::size_t>(first));
    timed.seconds.push_back(seconds.count() / static_cast<double>(last - first));
  }
  if (meter == nullptr) return timed;
  // All steps exchange alike; when one ends, some messages of the next one have been counted.
  const trace::TransferUsage whole = meter->usage();
  const auto share = [&](std::int64_t count) { return count * request.steps / all; };
  timed.transfers.messages_sent = share(whole.messages_sent);
  timed.transfers.messages_received = share(whole.messages_received);
  timed.transfers.bytes_sent = share(whole.bytes_sent);
  timed.transfers.bytes_received = share(whole.bytes_received);
  return timed;
}

// What rank 0 tells of a rank.
struct RankFigures {
  trace::TransferUsage transfers;
  std::int64_t peak_bytes = 0;
  std::int64_t variable_bytes = 0;
  std::int64_t state_bytes = 0;  // of variables that are not learnt: the optimiser's, running statistics
};

RankFigures figures_of(const Session& session, Graph& graph, const Runtime& runtime,
                       const trace::TransferUsage& transfers) {
  RankFigures figures;
  figures.transfers = transfers;
  figures.peak_bytes = static_cast<std::int64_t>(session.peak_bytes());
  for (const Variable& variable : graph.variables()) {
    if (variable.location().rank != runtime.rank()) continue;
    const auto bytes = static_cast<std::int64_t>(variable.info().bytes());
    figures.variable_bytes += bytes;
    if (!variable.trainable()) figures.state_bytes += bytes;
  }
  return figures;
}

std::vector<JsonObject> ranks_json(const std::vector<RankFigures>& ranks, Endpoint* endpoint) {
  std::vector<JsonObject> objects;
  for (const RankFigures& rank : ranks) {
    const auto number = static_cast<int>(objects.size());
    JsonObject object;
    object.add("rank", number)
        .add("peak_bytes", rank.peak_bytes)
        .add("variable_bytes", rank.variable_bytes)
        .add("state_bytes", rank.state_bytes);
    if (endpoint != nullptr) {
      object.add("host", endpoint->host(number));
      add_transfers(object, rank.transfers);
    }
    objects.push_back(std::move(object));
  }
  return objects;
}

program::MeasuredMachine measure_machine(const Runtime& runtime) {
  constexpr double seconds = 0.4;
  const cpu::CoreRates rates = cpu::measure_core_rates(runtime.workers(), seconds);
  return {cpu::processor_name(), runtime.workers(), rates.operations_per_second, rates.bytes_per_second};
}

train::LoadedJob bench_job(const BenchRequest& request) {
  train::LoadedJob loaded = model_job(request.model, with_parallel_options({}, request.run));
  loaded.job.data.batch = request.batch;
  loaded.job.optimizer.name = request.optimizer;
  loaded.job.optimizer.learning_rate = 0.001;
  loaded.job.train.scheduling = request.scheduling;
  loaded.job.train.convolutions = request.convolutions;
  loaded.job.train.memory_limit = request.memory_limit;
  return loaded;
}

// Where the trace goes, if there is to be one.
std::optional<std::filesystem::path> trace_path(const BenchRequest& request) {
  if (request.trace) return *request.trace;
  if (request.report) return std::filesystem::path(*request.report).replace_extension(".json");
  return std::nullopt;
}

void check_files(const BenchRequest& request) {
  std::vector<Output> outputs;
  if (request.save) outputs.push_back({"--save", *request.save});
  if (request.report) outputs.push_back({"--report", *request.report});
  if (const auto trace = trace_path(request)) {
    outputs.push_back({request.trace ? "--trace" : "--report, whose trace is", *trace});
  }
  check_outputs("purine bench", outputs);
}

int bench(const BenchRequest& request, Launch& launch) {
  const std::optional<std::filesystem::path> traced_to = trace_path(request);
  const models::Model* found = nullptr;
  std::optional<train::LoadedJob> job;
  std::optional<train::ParallelSetup> made;
  at_all_ranks(launch.endpoint(), [&] {
    try {
      found = &models::find_model(request.model);
    } catch (const Error& error) {
      throw Error("command", error.message(), error.hint()).at("purine bench");
    }
    job = bench_job(request);
    if (launch.is_first()) check_files(request);
    made = train::parallel_setup(*job, launch.ranks());
  });
  const models::Model& model = *found;
  const train::LoadedJob& loaded = *job;
  const train::ParallelSetup& setup = *made;
  const data::ImageSize image = request.image.empty()
                                    ? data::ImageSize{model.image[0], model.image[1], model.image[2]}
                                    : data::ImageSize{request.image[0], request.image[1], request.image[2]};
  const std::int64_t classes = request.classes > 0 ? request.classes : model.classes;

  const std::unique_ptr<Runtime> runtime = launch.make_runtime(loaded, request.run);
  const train::BuildJob build = [&](const train::Job& of, Graph& graph, Location device) {
    const data::Batch batch = data::synthetic(graph, {.batch = of.data.batch,
                                                      .image = image,
                                                      .classes = classes,
                                                      .seed = static_cast<std::uint64_t>(request.seed)});
    if (request.inference) {
      train::build_prediction(batch.image, of, classes, device);
    } else {
      train::build_training(batch, of, classes, 1, device);
    }
  };
  std::optional<train::PlacedGraph> placed;
  at_all_ranks(launch.endpoint(), [&] {
    try {
      placed.emplace(setup, [&](Graph& graph, Location device) { build(loaded.job, graph, device); });
    } catch (const train::JobMistake& mistake) {
      throw Error("command", "the model " + mistake.text(), "--image sets their size").at("purine bench");
    }
  });
  Graph& graph = placed->written();
  std::optional<train::StepTrace> trace;
  SessionOptions options;
  options.seed = static_cast<std::uint64_t>(request.seed);
  options.scheduling = train::scheduling_of(loaded.job);
  if (traced_to) {
    trace.emplace(request.warm_up, request.warm_up + request.steps, 1000, *runtime,
                  std::vector<std::pair<std::string, std::string>>{{"model", request.model},
                                                                   {"batch", std::to_string(request.batch)}});
    trace->compare_clocks(*runtime);
    options.trace = trace->hook();
  }
  std::optional<train::OperatorMeter> meter;
  const bool is_judged = runtime->ranks() > 1;
  if (request.ops || request.save || is_judged) {
    constexpr std::int64_t judged_steps = 8;
    const std::int64_t metered =
        request.ops || request.save ? request.steps : std::min(request.steps, judged_steps);
    meter.emplace(request.warm_up, request.warm_up + metered, *runtime);
    options.trace = [traced = std::move(options.trace), metered = meter->hook()](const RanEvent& event) {
      if (traced) traced(event);
      metered(event);
    };
  }
  const Clock::time_point before = Clock::now();
  if (request.memory_limit > 0) {
    placed->fit_memory(*runtime, static_cast<std::size_t>(request.memory_limit * 1e6), options);
  }
  Session session(*runtime, placed->running(), options);
  const train::SchedulingReport scheduling = train::report_scheduling(session, *runtime, loaded, build);
  const double ready_seconds = seconds_since(before);
  const TimedSteps timed = setup.devices().size() > 1
                               ? run_on_devices(session, request, runtime->transfer_meter())
                               : run_on_one_device(session, request, traced_to.has_value());
  const std::vector<double>& times = timed.seconds;
  const std::vector<RankFigures> ranks =
      gather_values(launch.endpoint(), figures_of(session, placed->running(), *runtime, timed.transfers));
  std::optional<trace::RunDescription> description;
  if (is_judged || (trace && !request.inference)) {
    description = train::describe_run(*runtime, setup, image, classes, launch.links());
  }
  std::optional<train::RunPrediction> prediction;
  if (is_judged) prediction = train::predict_run(*runtime, *description, *meter, build, median(times));
  if (trace && !request.inference) trace->describe(*description);
  if (trace) {
    const train::StepTrace::Written written = trace->write_all(*runtime, *traced_to);
    at_all_ranks(launch.endpoint(), [&] {
      if (written.error) throw *written.error;
      if (launch.is_first() && request.report) {
        write_report(std::array{*traced_to}, {.title = request.model, .job = {}, .metrics = {}},
                     *request.report);
      }
    });
  }
  if (!launch.is_first()) return success;
  std::optional<program::CostTable> costs;
  if (request.ops || request.save) costs = meter->costs(measure_machine(*runtime));
  if (request.save) io::write_file(*request.save, costs->text());
  std::optional<double> dispatcher_share;
  if (request.ops) {
    if (const auto seconds = train::dispatcher_seconds(session.program(), *runtime)) {
      dispatcher_share = *seconds / median(times);
    }
  }

  const auto images = static_cast<double>(request.batch);
  const double median_rate = images / median(times);
  const double best_rate = images / *std::min_element(times.begin(), times.end());
  if (request.json) {
    const std::int64_t extents[] = {image.channels, image.height, image.width};
    std::vector<std::string> devices;
    for (const Location& device : setup.devices()) devices.push_back(device.text());
    JsonObject report;
    report.add("model", request.model)
        .add("batch", request.batch)
        .add("steps", request.steps)
        .add("image", std::span<const std::int64_t>(extents))
        .add("classes", classes)
        .add("parameters", train::parameter_count(graph))
        .add("inference", request.inference)
        .add("devices", std::span<const std::string>(devices))
        .add("scheme", setup.scheme->name)
        .add("mesh", setup.mesh.text())
        .add("workers", runtime->workers())
        .add("images_per_s_median", median_rate)
        .add("images_per_s_best", best_rate)
        .add("peak_bytes", session.peak_bytes())
        .add("run_again", placed->memory_fit().operators.size())
        .add("ready_s", ready_seconds)
        .add("ranks", std::span<const JsonObject>(ranks_json(ranks, launch.endpoint())));
    add_scheduling(report, scheduling);
    if (prediction) add_prediction(report, *prediction);
    if (request.ops) add_operators(report, *costs, request.by, median(times));
    if (dispatcher_share) report.add("dispatcher", *dispatcher_share);
    print_line(report);
    return success;
  }
  fmt::print("{}: {} parameters, batch {}, images {} x {} x {}, {}, {} of memory, ready in {:.2f} s\n",
             request.model, count_text(train::parameter_count(graph)), request.batch, image.channels,
             image.height, image.width, counted_text(runtime->workers(), "worker"),
             bytes_text(session.peak_bytes()), ready_seconds);
  if (setup.is_divided()) fmt::print("{} devices: {}\n", setup.devices().size(), setup.text());
  if (const std::string text = train::scheduling_text(scheduling); !text.empty()) fmt::print("{}\n", text);
  if (const std::string text = placed->memory_text(); !text.empty()) fmt::print("{}\n", text);
  fmt::print("{:.2f} images/s median, {:.2f} best, over {}\n", median_rate, best_rate,
             counted_text(request.steps, "step"));
  for (std::size_t rank = 0; launch.endpoint() != nullptr && rank < ranks.size(); ++rank) {
    fmt::print("rank {} at {}: {}\n", rank, launch.endpoint()->host(static_cast<int>(rank)),
               train::transfers_text(ranks[rank].transfers));
  }
  if (prediction) fmt::print("{}\n", train::prediction_text(*prediction));
  if (request.ops) fmt::print("\n{}", operators_text(*costs, request.by, median(times)));
  if (dispatcher_share) {
    fmt::print("the dispatcher alone, with operators that do nothing: {:.3f} ms, {:.3f}% of a step\n",
               1e3 * *dispatcher_share * median(times), 100 * *dispatcher_share);
  }
  return success;
}

}  // namespace

int bench(const BenchRequest& request) {
  Launch launch;
  return launch.run([&] { return bench(request, launch); });
}

}  // namespace purine::cli
