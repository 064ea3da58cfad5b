#include "purine/sim/cost_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "purine/core/error.h"
#include "purine/io/file.h"
#include "purine/trace/chrome_trace.h"

namespace purine::sim {
namespace {

// Of the costs that it has considered, the one whose roofline is nearest to the wanted one, by their ratio.
class Nearest {
 public:
  explicit Nearest(double wanted) : wanted_(wanted) {}
  void consider(const MeasuredCost& cost, double roofline) {
    if (!(wanted_ > 0) || !(roofline > 0)) return;
    const double distance = std::abs(std::log(roofline / wanted_));
    if (found_ != nullptr && distance >= least_) return;
    found_ = &cost;
    least_ = distance;
  }
  const MeasuredCost* found() const { return found_; }

 private:
  const double wanted_;
  const MeasuredCost* found_ = nullptr;
  double least_ = 0;
};

}  // namespace

double MeasuredCost::seconds_at(std::int64_t iteration, std::uint32_t which) const {
  if (iterations == 0) return seconds;
  const std::size_t in_each = executions.size() / iterations;
  const std::size_t measured = static_cast<std::size_t>(iteration) % iterations;
  return executions[measured * in_each + which % in_each];
}

CostTable CostTable::from_trace(const trace::Trace& trace) {
  struct Execution {
    double seconds = 0;
    int parts = 0;
  };
  std::map<std::pair<std::int64_t, std::uint32_t>, Execution> executions;  // by iteration and operator
  for (const trace::OperatorEvent& event : trace.events) {
    Execution& execution = executions[{event.iteration, event.op}];
    execution.seconds += 1e-9 * static_cast<double>(event.end - event.begin);
    execution.parts = std::max(execution.parts, event.part + 1);
  }
  CostTable table;
  std::map<const MeasuredCost*, std::set<std::int64_t>> iterations;
  for (const auto& [key, execution] : executions) {
    const trace::OperatorLabel& label = trace.operators[key.second];
    if (label.exchange) continue;
    MeasuredCost& cost = table.costs_[{label.type, label.shapes}];
    cost.seconds += execution.seconds;
    cost.parts = std::max(cost.parts, execution.parts);
    cost.cost = {label.operations, label.bytes};
    cost.executions.push_back(execution.seconds);
    iterations[&cost].insert(key.first);
  }
  for (auto& [key, cost] : table.costs_) {
    cost.seconds /= static_cast<double>(cost.executions.size());
    // A trace may have lost some of an iteration's.
    if (cost.executions.size() % iterations[&cost].size() == 0) cost.iterations = iterations[&cost].size();
  }
  return table;
}

CostTable CostTable::read(const std::filesystem::path& path) {
  std::string text;
  try {
    text = io::read_file(path);
  } catch (const Error& error) {
    throw Error("cost table", error.message(), error.hint()).at(path.string());
  }
  if (text.substr(0, 100).find("purine operator costs") != std::string::npos) {
    try {
      return from_costs(program::CostTable::parse(text));
    } catch (const Error& error) {
      throw error.at(path.string());
    }
  }
  return from_trace(trace::read_chrome_trace(path));
}

CostTable CostTable::from_costs(const program::CostTable& costs) {
  std::map<std::pair<std::string, std::string>, std::vector<MeasuredCost>> by_shapes;
  for (const program::OperatorCost& cost : costs.operators()) {
    by_shapes[{cost.type, cost.shapes}].push_back({cost.seconds, cost.parts, {cost.operations, cost.bytes}});
  }
  CostTable table;
  for (auto& [key, all] : by_shapes) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end(),
                     [](const MeasuredCost& a, const MeasuredCost& b) { return a.seconds < b.seconds; });
    table.costs_[key] = *middle;
  }
  return table;
}

const MeasuredCost* CostTable::find(std::string_view type, std::string_view shapes) const {
  const auto found = costs_.find({std::string(type), std::string(shapes)});
  return found != costs_.end() ? &found->second : nullptr;
}

const MeasuredCost* CostTable::most_alike(std::string_view type, const Cost& cost, DType dtype,
                                          const Processor& processor) const {
  Nearest nearest(processor.seconds(cost, dtype));
  for (auto each = costs_.lower_bound({std::string(type), ""});
       each != costs_.end() && each->first.first == type; ++each) {
    nearest.consider(each->second, processor.seconds(each->second.cost, dtype));
  }
  return nearest.found();
}

const MeasuredCost* CostTable::most_alike(const Cost& cost, DType dtype, const Processor& processor) const {
  // Without its operations, what the memory limits takes as long.
  const auto memory_seconds = [&](const Cost& of) {
    const double seconds = processor.seconds({0, of.bytes}, dtype);
    return processor.seconds(of, dtype) > seconds ? 0 : seconds;
  };
  Nearest nearest(memory_seconds(cost));
  for (const auto& [key, each] : costs_) nearest.consider(each, memory_seconds(each.cost));
  return nearest.found();
}

void CostTable::set(std::string_view type, std::string_view shapes, const MeasuredCost& cost) {
  costs_[{std::string(type), std::string(shapes)}] = cost;
}

}  // namespace purine::sim
