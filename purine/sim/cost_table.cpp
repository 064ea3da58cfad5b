#include "purine/sim/cost_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "purine/core/error.h"
#include "purine/io/file.h"
#include "purine/trace/chrome_trace.h"

namespace purine::sim {

CostTable CostTable::from_trace(const trace::Trace& trace) {
  struct Execution {
    double nanoseconds = 0;
    int parts = 0;
    Cost cost = {};
  };
  std::map<std::pair<std::uint32_t, std::int64_t>, Execution> executions;
  for (const trace::OperatorEvent& event : trace.events) {
    Execution& execution = executions[{event.op, event.iteration}];
    execution.nanoseconds += static_cast<double>(event.end - event.begin);
    execution.parts = std::max(execution.parts, event.part + 1);
  }
  std::map<std::pair<std::string, std::string>, std::vector<Execution>> by_shapes;
  for (auto& [key, execution] : executions) {
    const trace::OperatorLabel& label = trace.operators[key.first];
    if (label.exchange) continue;
    execution.cost = {label.operations, label.bytes};
    by_shapes[{label.type, label.shapes}].push_back(execution);
  }
  CostTable table;
  for (auto& [key, all] : by_shapes) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end(),
                     [](const Execution& a, const Execution& b) { return a.nanoseconds < b.nanoseconds; });
    table.costs_[key] = {middle->nanoseconds * 1e-9, middle->parts, middle->cost};
  }
  return table;
}

CostTable CostTable::read(const std::filesystem::path& path) {
  const std::string text = io::read_file(path);
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
  const double wanted = processor.seconds(cost, dtype);
  if (!(wanted > 0)) return nullptr;
  const MeasuredCost* nearest = nullptr;
  double least = 0;
  for (auto each = costs_.lower_bound({std::string(type), ""});
       each != costs_.end() && each->first.first == type; ++each) {
    const double has = processor.seconds(each->second.cost, dtype);
    if (!(has > 0)) continue;
    const double distance = std::abs(std::log(has / wanted));
    if (nearest != nullptr && distance >= least) continue;
    nearest = &each->second;
    least = distance;
  }
  return nearest;
}

void CostTable::set(std::string_view type, std::string_view shapes, const MeasuredCost& cost) {
  costs_[{std::string(type), std::string(shapes)}] = cost;
}

}  // namespace purine::sim
