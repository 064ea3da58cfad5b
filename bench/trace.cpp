// What tracing a step costs: nanoseconds an event, and their share of a training step of real networks.
// Usage: bench_trace [ROUNDS]
//
// Sessions of one worker run 20,000 operators of a single element, untraced and with every step traced, in
// turn: the difference of the processor time, divided by the events, is the cost of one, the reading of
// clocks included. Networks tell how many events a step has, and how much processor time it takes.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/error.h"
#include "purine/data/source.h"
#include "purine/models/models.h"
#include "purine/ops/constant.h"
#include "purine/ops/relu.h"
#include "purine/session/session.h"
#include "purine/train/job_file.h"
#include "purine/train/network.h"
#include "purine/train/step_trace.h"

namespace {

using namespace purine;

// Processor time: what else runs on the machine takes cores away, but hardly changes how long one works.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

constexpr std::int64_t small_operators = 20'000;

void build_small(Graph& graph) {
  const TensorInfo info{{1}, DType::f32};
  const Variable variable = graph.variable("variable", info, ops::make_constant(info, 1));
  Tensor value = variable;
  for (std::int64_t i = 0; i < small_operators; ++i) value = ops::relu(value);
  graph.set_next(variable, value);
}

// Seconds a step of the small operators.
double small_step(Runtime& runtime, bool traced) {
  constexpr std::int64_t warm_up = 5;
  constexpr std::int64_t steps = 40;
  Graph graph;
  build_small(graph);
  std::optional<train::StepTrace> trace;
  SessionOptions options;
  if (traced) {
    trace.emplace(0, warm_up + steps, 1000, runtime);
    options.trace = trace->hook();
  }
  Session session(runtime, graph, options);
  session.run_steps(warm_up);
  const double begin = processor_seconds();
  session.run_steps(steps);
  return (processor_seconds() - begin) / steps;
}

void tell_of_network(Runtime& runtime, std::string_view name, std::int64_t batch, double event_seconds) {
  const models::Model& model = models::find_model(name);
  const std::string text = fmt::format("[model]\nname = \"{}\"\n[data]\nfolder = \"none\"\n", name);
  const train::LoadedJob loaded = train::parse_job(text, name, {});
  Graph graph;
  train::build_training(data::synthetic(graph, {.batch = batch,
                                                .image = {model.image[0], model.image[1], model.image[2]},
                                                .classes = model.classes,
                                                .seed = 1}),
                        loaded.job, model.classes, 1, runtime.devices().front());
  constexpr std::int64_t steps = 4;
  std::int64_t events = 0;  // one worker counts
  SessionOptions options;
  options.trace = [&events](const RanEvent& event) { events += event.iteration == 0 ? 1 : 0; };
  Session session(runtime, graph, options);
  session.run_steps(1);
  const double begin = processor_seconds();
  session.run_steps(steps);
  const double seconds = (processor_seconds() - begin) / steps;
  fmt::print("{:<14} batch {:>2}: {:>5} events a step of {:>8.2f} ms: {:.3f}%\n", name, batch, events,
             1e3 * seconds, 100 * static_cast<double>(events) * event_seconds / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
    RuntimeOptions options;
    options.workers = 1;
    Runtime runtime(options);
    std::vector<double> plain;
    std::vector<double> difference;
    for (int round = 0; round < rounds; ++round) {
      plain.push_back(small_step(runtime, false) / small_operators);
      difference.push_back(small_step(runtime, true) / small_operators - plain.back());
    }
    const double event = median(difference);
    const auto [least, most] = std::minmax_element(difference.begin(), difference.end());
    fmt::print("an event takes {:.1f} ns ({:.1f} to {:.1f}); an operator of one element {:.1f} ns untraced\n",
               1e9 * event, 1e9 * *least, 1e9 * *most, 1e9 * median(plain));
    tell_of_network(runtime, "lenet", 64, event);
    tell_of_network(runtime, "googlenet", 32, event);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
