#include "purine/cli/bench_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "purine/core/amount_text.h"
#include "purine/train/progress.h"

namespace purine::cli {
namespace {

using program::CostTable;
using program::MeasuredMachine;
using program::OperatorCost;

// One line: an operator, or several that are told together.
struct Line {
  std::string name;
  std::map<std::string, int> algorithms;  // how many operators have each
  int operators = 0;
  int parts = 0;
  double seconds = 0;
  double operations = 0;
  double bytes = 0;

  void add(const OperatorCost& cost) {
    if (!cost.algorithm.empty()) ++algorithms[cost.algorithm];
    ++operators;
    parts += cost.parts;
    seconds += cost.seconds;
    operations += cost.operations;
    bytes += cost.bytes;
  }
  double operations_per_second() const { return seconds > 0 ? operations / seconds : 0; }
  double bytes_per_second() const { return seconds > 0 ? bytes / seconds : 0; }
  // The share of what one core can do at most in this time.
  double roofline(const MeasuredMachine& machine) const {
    return std::max(operations_per_second() / machine.operations_per_second,
                    bytes_per_second() / machine.bytes_per_second);
  }
  std::string algorithm() const {
    std::string text;
    for (const auto& [algorithm, count] : algorithms) {
      text += (text.empty() ? "" : ", ") + algorithm;
      if (algorithms.size() > 1) text += fmt::format(" {}", count);
    }
    return text;
  }
};

std::string line_name(const OperatorCost& cost, std::string_view by) {
  if (by == "path") return cost.path;
  if (by == "type") return cost.type;
  return fmt::format("{} {}{}{}", cost.type, cost.attributes, cost.attributes.empty() ? "" : " ",
                     cost.shapes);
}

std::vector<Line> lines_of(const CostTable& costs, std::string_view by) {
  std::map<std::string, Line> by_name;
  for (const OperatorCost& cost : costs.operators()) by_name[line_name(cost, by)].add(cost);
  std::vector<Line> lines;
  for (auto& [name, line] : by_name) {
    line.name = name;
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& one, const Line& other) { return one.seconds > other.seconds; });
  return lines;
}

Line total_of(const CostTable& costs) {
  Line total;
  for (const OperatorCost& cost : costs.operators()) total.add(cost);
  return total;
}

// Of all that the workers' cores can do in a step.
double busy_share(const CostTable& costs, double step_seconds) {
  return total_of(costs).seconds / (step_seconds * costs.machine().workers);
}

double peak_share(const CostTable& costs, double step_seconds) {
  return total_of(costs).operations / (step_seconds * costs.machine().workers) /
         costs.machine().operations_per_second;
}

}  // namespace

std::string operators_text(const CostTable& costs, std::string_view by, double step_seconds) {
  const MeasuredMachine& machine = costs.machine();
  const Line total = total_of(costs);
  std::string text = fmt::format("{:>9} {:>6} {:>8} {:>7} {:>9}  {:<24} {}\n", "ms", "share", "GFLOP/s",
                                 "GB/s", "roofline", "algorithm", by == "path" ? "operator" : "operators");
  for (const Line& line : lines_of(costs, by)) {
    const std::string name = by == "path" ? line.name : fmt::format("{} x {}", line.operators, line.name);
    text += fmt::format("{:9.3f} {:5.1f}% {:8.1f} {:7.2f} {:8.1f}%  {:<24} {}\n", 1e3 * line.seconds,
                        total.seconds > 0 ? 100 * line.seconds / total.seconds : 0,
                        1e-9 * line.operations_per_second(), 1e-9 * line.bytes_per_second(),
                        100 * line.roofline(machine), line.algorithm(), name);
  }
  text += fmt::format("{:9.3f} all {} operators; {} busy {} of {:.3f} ms a step\n", 1e3 * total.seconds,
                      count_text(total.operators), counted_text(machine.workers, "worker"),
                      train::percent_text(busy_share(costs, step_seconds)), 1e3 * step_seconds);
  text += fmt::format(
      "{:.2f} GFLOP a step: {:.1f} GFLOP/s, {} of the {:.1f} that {} of {} can do\n", 1e-9 * total.operations,
      1e-9 * total.operations / step_seconds, train::percent_text(peak_share(costs, step_seconds)),
      1e-9 * machine.operations_per_second * machine.workers,
      machine.workers == 1 ? "one core" : fmt::format("{} cores", machine.workers), machine.processor);
  text += fmt::format(
      "one core: {:.1f} GFLOP/s of multiply-adds, {:.2f} GB/s of memory, while all workers' cores do\n",
      1e-9 * machine.operations_per_second, 1e-9 * machine.bytes_per_second);
  return text;
}

void add_operators(JsonObject& object, const CostTable& costs, std::string_view by, double step_seconds) {
  const MeasuredMachine& machine = costs.machine();
  std::vector<JsonObject> operators;
  for (const Line& line : lines_of(costs, by)) {
    operators.push_back(JsonObject()
                            .add(by, line.name)
                            .add("operators", line.operators)
                            .add("algorithm", line.algorithm())
                            .add("parts", line.parts)
                            .add("seconds", line.seconds)
                            .add("operations_per_second", line.operations_per_second())
                            .add("bytes_per_second", line.bytes_per_second())
                            .add("roofline", line.roofline(machine)));
  }
  object
      .add("machine", JsonObject()
                          .add("processor", machine.processor)
                          .add("workers", machine.workers)
                          .add("operations_per_second", machine.operations_per_second)
                          .add("bytes_per_second", machine.bytes_per_second))
      .add("busy", busy_share(costs, step_seconds))
      .add("peak", peak_share(costs, step_seconds))
      .add("operators", std::span<const JsonObject>(operators));
}

}  // namespace purine::cli
