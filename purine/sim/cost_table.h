// What operators take, as it was measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purine/core/dtype.h"
#include "purine/graph/contract.h"
#include "purine/program/cost_table.h"
#include "purine/sim/cluster.h"
#include "purine/trace/trace.h"

namespace purine::sim {

struct MeasuredCost {
  double seconds = 0;  ///< of one execution, all parts one after the other
  int parts = 1;
  Cost cost = {};  ///< what its contract counts
  /// Of each execution, as far as that is known: iteration by iteration, in each as many.
  std::vector<double> executions = {};
  std::size_t iterations = 0;

  /// Of an execution in an iteration: that of the measured one, which come over again when they are through.
  /// `which` tells operators of the same shapes apart. What slowed a machine down slowed operators of the
  /// same iteration down, and does so here. Where nothing else is known, `seconds`.
  double seconds_at(std::int64_t iteration, std::uint32_t which) const;
};

/// Costs by type of operator, and shapes and layouts of what it takes and makes.
class CostTable {
 public:
  /// From the trace of a run: of each operator all executions and their mean, since all of them are in the
  /// time of a step, the slow ones as well. A run with one worker measures what an operator takes alone.
  static CostTable from_trace(const trace::Trace& trace);
  /// From costs that a benchmark has measured.
  static CostTable from_costs(const program::CostTable& costs);
  /// From what `purine bench --ops --save` wrote, or from a trace's file. Throws Error("cost table", …) if it
  /// cannot be read or is a table with a mistake, and what reading a trace does.
  static CostTable read(const std::filesystem::path& path);

  /// Null where nothing was measured. `shapes` as Program::shapes writes them.
  const MeasuredCost* find(std::string_view type, std::string_view shapes) const;
  /// Of the measured operators of a type, the one whose cost is nearest by a processor's roofline; null if
  /// none of them has a cost. What was measured of it, times the ratio of the two rooflines, is the best
  /// guess for an operator that was not.
  const MeasuredCost* most_alike(std::string_view type, const Cost& cost, DType dtype,
                                 const Processor& processor) const;
  /// For one of whose type none was measured, and which the memory's bandwidth limits: the nearest one of all
  /// that it limits as well; else null.
  const MeasuredCost* most_alike(const Cost& cost, DType dtype, const Processor& processor) const;
  void set(std::string_view type, std::string_view shapes, const MeasuredCost& cost);
  std::size_t size() const { return costs_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, MeasuredCost> costs_;
};

}  // namespace purine::sim
