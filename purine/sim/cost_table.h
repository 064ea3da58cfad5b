// What operators take, as it was measured.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "purine/program/cost_table.h"
#include "purine/trace/trace.h"

namespace purine::sim {

struct MeasuredCost {
  double seconds = 0;  ///< of one execution, all parts one after the other
  int parts = 1;
};

/// Costs by type of operator, and shapes and layouts of what it takes and makes.
class CostTable {
 public:
  /// From the trace of a run: of each operator's executions the median. A run with one worker measures what
  /// an operator takes alone.
  static CostTable from_trace(const trace::Trace& trace);
  /// From costs that a benchmark has measured.
  static CostTable from_costs(const program::CostTable& costs);
  /// From what `purine bench --ops --save` wrote, or from a trace's file.
  static CostTable read(const std::filesystem::path& path);

  /// Null where nothing was measured. `shapes` as Program::shapes writes them.
  const MeasuredCost* find(std::string_view type, std::string_view shapes) const;
  void set(std::string_view type, std::string_view shapes, const MeasuredCost& cost);
  std::size_t size() const { return costs_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, MeasuredCost> costs_;
};

}  // namespace purine::sim
