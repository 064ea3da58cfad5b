// One rank of a simulated run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "purine/net/transport/pace.h"
#include "purine/net/transport/transfers.h"
#include "purine/program/program.h"
#include "purine/runtime/dispatcher.h"
#include "purine/sim/accelerator.h"
#include "purine/sim/cores.h"
#include "purine/sim/network.h"
#include "purine/sim/simulation.h"

namespace purine::sim {

/// A rank's program, its dispatcher, and the simulated devices that it runs on.
class SimulatedRank final : public Executor,
                            public Activity,
                            private Cores::Listener,
                            private net::MessengerListener {
 public:
  /// What all ranks share.
  struct Shared {
    VirtualTime& time;
    Network& network;
    const program::WholeGraph& whole;
    const Cluster& cluster;
    const SimulationOptions& options;
    net::Pace pace;                       ///< by the slowest link, as ranks measure it when they start
    std::vector<SimulatedRank*>& active;  ///< ranks to which something happened
  };

  /// Throws Error where a device has too little memory.
  SimulatedRank(const Shared& shared, std::int32_t rank);

  std::int32_t rank() const { return rank_; }
  const Program& program() const { return *program_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  /// Begins what has become ready.
  void proceed();
  /// Calls `trace` for each execution from now on.
  void record(std::function<void(const Execution&)> trace) { trace_ = std::move(trace); }

  void reset_meters();
  void add_results(SimulationResult& result);
  std::uint64_t executions() const { return executions_; }
  std::int64_t messages_sent() const { return messages_sent_; }

  int parts(std::uint32_t op) const override { return plans_[op].parts; }
  void begin(std::uint32_t op, std::int64_t iteration, int part, int worker, CompletionListener& listener,
             std::uint64_t tag) override;
  void issue(std::uint32_t op, std::int64_t iteration, Queue& queue) override;
  void start(std::uint32_t op, std::int64_t iteration, double urgency, CompletionListener& listener,
             std::uint64_t tag) override;

  void something_completed() override;

 private:
  // What an operator does, made out once.
  struct Plan {
    enum class Kind : std::uint8_t { nothing, compute, transfer, send, receive };
    Kind kind = Kind::nothing;
    int parts = 1;
    double seconds = 0;  // of a part
    // Where executions were measured: those, by so much, beginning with one of the device's own.
    const MeasuredCost* measured = nullptr;
    double scale = 1;
    std::int64_t first_iteration = 0;
    std::int64_t bytes = 0;
    std::int32_t peer = 0;
    std::uint32_t channel = 0;
    std::vector<Link*> way = {};
  };
  struct Accelerator {
    Accelerator(VirtualTime& time, Location location, const Gpu& gpu, Activity& activity);
    SimulatedDevice device;
    Link in;
    Link out;
    Link peer_in;
    Link peer_out;
    const Gpu& gpu;
  };
  struct BusyWorker {
    CompletionListener* listener = nullptr;
    std::uint64_t tag = 0;
  };

  const Host& host() const { return shared_.cluster.hosts[static_cast<std::size_t>(rank_)]; }
  Accelerator& accelerator(Location location);
  void make_devices();
  void plan_costs();
  double seconds_of_part(std::uint32_t op, std::int64_t iteration) const;
  std::vector<Link*> way_of(std::uint32_t op);
  void check_memory() const;
  int workers_of(Location cpu) const;
  std::size_t bytes_at(Location location) const;

  void work_done(std::uint64_t tag) override;
  void words_arrived(int peer, std::string_view words) override;
  void chunk_sent(std::uint64_t ticket) override;
  void chunk_received(int peer, std::uint64_t ticket) override;
  void chunk_withdrawn(std::uint64_t) override {}
  void connection_failed(int, std::string_view) override {}

  const Shared shared_;
  const std::int32_t rank_;
  std::unique_ptr<Program> program_;
  Cores cores_;
  OverlapMeter cpu_meter_;
  std::vector<std::unique_ptr<Accelerator>> accelerators_;  // by index, of those that are used
  std::vector<Plan> plans_;                                 // by operator
  std::size_t measured_ = 0;
  std::size_t computing_ = 0;
  std::vector<BusyWorker> workers_;
  std::vector<std::unique_ptr<Queue>> queues_;
  net::Transfers transfers_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::function<void(const Execution&)> trace_;
  std::uint64_t executions_ = 0;
  std::int64_t messages_sent_ = 0;
  bool is_active_ = false;
};

}  // namespace purine::sim
