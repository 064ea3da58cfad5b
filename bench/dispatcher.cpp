// The dispatcher alone, with operators that do nothing: nanoseconds an operator on a chain, on independent
// operators and on a random graph. Beside it, in the same run and in turns with it, Taskflow, if CMake was
// given PURINE_TASKFLOW_PATH. Neither pins its threads.
//
//   bench_dispatcher [operators] [repetitions]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#ifdef PURINE_HAS_TASKFLOW
#include <taskflow/taskflow.hpp>
#endif

#include "purine/core/random.h"
#include "purine/program/marked_graph.h"
#include "purine/runtime/dispatcher.h"

namespace {

using namespace purine;

struct Dag {
  std::string name;
  std::uint32_t operators = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

Dag chain(std::uint32_t operators) {
  Dag dag{"chain", operators, {}};
  for (std::uint32_t op = 1; op < operators; ++op) dag.edges.emplace_back(op - 1, op);
  return dag;
}

Dag independent(std::uint32_t operators) {
  return {"independent", operators, {}};
}

// Every operator has 3 inputs, drawn from all operators before it.
Dag random(std::uint32_t operators) {
  Dag dag{"random", operators, {}};
  const Random random(1, 0, 0);
  for (std::uint32_t op = 1; op < operators; ++op) {
    for (std::uint32_t input = 0; input < 3; ++input) {
      dag.edges.emplace_back(static_cast<std::uint32_t>(random.below(std::uint64_t{op} * 3 + input, op)), op);
    }
  }
  return dag;
}

class EmptyOperators final : public Executor {
 public:
  void run(std::uint32_t, std::int64_t, int, int) override {}
};

double seconds_of(const std::function<void()>& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

MarkedGraph mark(const Dag& dag) {
  MarkedGraphBuilder builder(dag.operators);
  for (std::uint32_t op = 0; op < dag.operators; ++op) builder.set_cost(op, 1e-6);
  for (const auto& [from, to] : dag.edges) builder.add_edge({from, to, 0});
  return builder.build([](std::uint32_t op) { return std::to_string(op); });
}

// One way to run a graph; a call runs it once.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> nanoseconds;  // an operator, one entry a run
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void compare(const Dag& dag, int workers, int repetitions) {
  const MarkedGraph graph = mark(dag);
  EmptyOperators empty;
  std::vector<Contender> contenders;
  Dispatcher dispatcher(graph, empty, {Lane::cpu(workers)}, {.window = 1, .pin_workers = false});
  contenders.push_back({"purine",
                        [&] {
                          dispatcher.admit(dispatcher.finished() + 1);
                          dispatcher.drain();
                        },
                        {}});
#ifdef PURINE_HAS_TASKFLOW
  tf::Taskflow taskflow;
  std::vector<tf::Task> tasks;
  for (std::uint32_t op = 0; op < dag.operators; ++op) tasks.push_back(taskflow.emplace([] {}));
  for (const auto& [from, to] : dag.edges) tasks[from].precede(tasks[to]);
  tf::Executor executor(static_cast<std::size_t>(workers));
  contenders.push_back({"taskflow", [&] { executor.run(taskflow).wait(); }, {}});
#endif
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    for (Contender& contender : contenders) {
      const double seconds = seconds_of(contender.run);
      if (repetition >= 0) contender.nanoseconds.push_back(seconds / dag.operators * 1e9);
    }
  }
  fmt::print("{:12} {} workers", dag.name, workers);
  for (const Contender& contender : contenders) {
    fmt::print("  {} {:6.1f} (best {:6.1f})", contender.name, median(contender.nanoseconds),
               *std::min_element(contender.nanoseconds.begin(), contender.nanoseconds.end()));
  }
  if (contenders.size() > 1) {
    // Of runs next to each other, so that what else the machine does weighs on both.
    std::vector<double> ratios;
    for (std::size_t i = 0; i < contenders[0].nanoseconds.size(); ++i) {
      ratios.push_back(contenders[0].nanoseconds[i] / contenders[1].nanoseconds[i]);
    }
    fmt::print("  ratio {:.2f}", median(ratios));
  }
  fmt::print("  {:.1f} bytes an operator\n", static_cast<double>(graph.bytes()) / dag.operators);
}

}  // namespace

int main(int argc, char** argv) {
  const auto operators = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 200'000);
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 11;
  fmt::print("nanoseconds an operator, median of {} runs of {} operators\n", repetitions, operators);
  for (const auto& make : {chain, independent, random}) {
    const Dag dag = make(operators);
    for (const int workers : {1, 2}) compare(dag, workers, repetitions);
  }
}
