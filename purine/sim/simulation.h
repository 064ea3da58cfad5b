// A graph's training on a cluster, in virtual time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/sim/cluster.h"
#include "purine/sim/cost_table.h"
#include "purine/sim/overlap_meter.h"
#include "purine/trace/trace.h"

namespace purine::sim {

struct SimulationOptions {
  std::int64_t warm_up = 2;  ///< iterations before those that count
  std::int64_t steps = 6;    ///< iterations that count; one more follows them
  int window = 2;            ///< iterations in progress at a time, as SessionOptions::window
  /// Measured costs of the operators at locations of one kind of device (`costs_of`). One that it doesn't
  /// hold takes as long as the most alike of its type that it does (`CostTable::most_alike`), times the ratio
  /// of their rooflines; one of which no type was measured, the roofline of its device.
  const CostTable* costs = nullptr;
  /// By rank, where each has its own, in place of `costs`.
  std::vector<const CostTable*> costs_by_rank = {};
  DeviceKind costs_of = DeviceKind::cpu;
  int workers = 0;     ///< of each host's CPU devices together, shared evenly; 0: one for each core
  bool trace = false;  ///< keep what runs in the iterations that count
  /// But nothing if all ranks' operators in them are more than so many.
  std::size_t most_traced = std::numeric_limits<std::size_t>::max();
  /// A barrier: an iteration begins only when the one before it has ended at all ranks.
  bool barrier = false;
  bool priorities = true;  ///< as FreezeOptions::priorities
  /// Told how far it has come, since many hosts take long: in `freezing` the hosts' parts, then in
  /// `simulating` the iterations of all hosts.
  std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};

  const CostTable* costs_at(std::int32_t rank) const {
    return costs_by_rank.empty() ? costs : costs_by_rank[static_cast<std::size_t>(rank)];
  }
};

/// A direction of a link, for the iterations that count.
struct LinkUse {
  std::string name;  ///< `0 network out`, `0/sim:1 in`
  Overlap use;       ///< against operators of the devices that it belongs to
};

struct DeviceUse {
  Location location;
  Overlap use;  ///< what moves are its copies; of a CPU, its host's messages
  std::size_t peak_bytes = 0;
  std::size_t memory_bytes = 0;  ///< that it has
};

struct SimulationResult {
  double step_seconds = 0;
  std::vector<double> finished_at;  ///< seconds, by iteration
  std::vector<DeviceUse> devices;   ///< in order of location
  std::vector<LinkUse> links;
  std::int64_t messages = 0;     ///< between hosts, an iteration
  std::int64_t bytes_sent = 0;   ///< between hosts, an iteration
  std::size_t operators = 0;     ///< of all ranks, an iteration
  std::size_t measured = 0;      ///< of those that compute: how many have a measured cost
  std::size_t computing = 0;     ///< how many compute
  std::uint64_t executions = 0;  ///< of operators' parts, simulated in all
  double freeze_seconds = 0;     ///< of real time, to freeze all parts
  double simulate_seconds = 0;   ///< of real time
  /// Of real time, for one execution: in the first half of the iterations, and in the second.
  std::array<double, 2> execution_seconds = {};
  std::vector<trace::Trace> traces;  ///< by rank, on one clock; as of a run; or none
};

/// Freezes each rank's part of a graph, and runs the dispatchers of all ranks with simulated workers, queues
/// and cards on one clock. What starts when, the credits and slots, and the transport between ranks are the
/// code of a real run. Nothing is computed and no tensor has memory; but the plan of the memory is made, and
/// a device that has less than it needs is an Error. So is a location that the cluster doesn't have.
///
/// Equal arguments give equal results.
SimulationResult simulate(Graph& graph, const Cluster& cluster, const SimulationOptions& options = {});

}  // namespace purine::sim
