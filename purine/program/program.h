// A graph frozen for execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/program/kernel.h"
#include "purine/program/marked_graph.h"
#include "purine/program/memory_plan.h"
#include "purine/program/whole_graph.h"

namespace purine {

/// What a lane of a program does. A CPU has one lane for everything; a device with queues has four, so that
/// transfers lie under computation.
enum class LaneKind : std::uint8_t {
  compute,
  copy_in,   ///< from the host's memory
  copy_out,  ///< to the host's memory
  peer,      ///< from another device
  network,   ///< to and from other ranks: a lane at the rank's first CPU, without workers
};

struct LaneUse {
  Location location;
  LaneKind kind = LaneKind::compute;
  bool operator==(const LaneUse& other) const = default;
};

struct FreezeOptions {
  /// The rank whose part of the graph is frozen.
  std::int32_t rank = 0;
  /// The graph as it was looked through for the parts of other ranks; null: that is done for this one alone.
  const program::WholeGraph* whole = nullptr;
  /// False: no kernels are bound. Such a program can be looked at, and run in virtual time, where nothing
  /// computes.
  bool bind_kernels = true;
  /// Threads that bind them, each another operator's: how kernels are bound must allow that.
  int binding_threads = 1;
  /// By kind of device; an emulated one runs the CPU's.
  std::map<DeviceKind, const KernelRegistry*> kernels = {};
  std::uint64_t seed = 1;  ///< of all random operators
  /// Rank-4 activations may be kept channels last in memory where an operator prefers it.
  bool channels_last = true;
  /// Operators may run as one where that saves a pass over memory (purine/program/fusion.h).
  bool fuse = true;
  program::MemoryOptions memory = {};
  /// Operators that run at the same time on a CPU location, for estimates of time alone.
  int parallelism = 2;
  /// What a rank sends to others in a second: for estimates too. By default 10 Gbit/s Ethernet.
  double network_bytes_per_second = 1.25e9;
  /// Operators that are ready take turns by their priorities; else by when they can start at the earliest, as
  /// where there are none.
  bool priorities = true;
  /// Fills every tensor's bytes with 0xff (NaN) before they are taken into use, and runs an operator's parts
  /// in turn: reading what was freed then shows.
  bool poison_freed = false;
  /// The kernels that bring a graph input in and hand a watched tensor out; needed if the graph has such.
  std::function<std::unique_ptr<Kernel>(Tensor)> host_input = {};
  std::function<std::unique_ptr<Kernel>(Tensor)> host_read = {};
};

/// Bytes that a program needs at a location, or in all, known before it runs.
struct MemoryUse {
  std::size_t variables = 0;           ///< the storage of its variables
  std::size_t arena = 0;               ///< activations, gradients and temporaries
  std::size_t slots = 0;               ///< tensors with slots of their own: data on its way in
  std::size_t scratch_per_worker = 0;  ///< the most that a kernel needs
  std::size_t tensors = 0;             ///< what all tensors would take without reuse, variables included
  std::size_t total(int workers) const {
    return variables + arena + slots + scratch_per_worker * static_cast<std::size_t>(workers);
  }
};

/// A rank's part of a graph frozen for execution: flat arrays, typed edges with tokens, priorities, planned
/// memory, bound kernels. The graph must outlive it. Freezing throws Error for whatever would go wrong later:
/// an operator without a kernel, a cycle without tokens, a graph that `verify` refuses.
class Program {
 public:
  Program(Graph& graph, const FreezeOptions& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  const MarkedGraph& marked_graph() const { return *marked_graph_; }
  Graph& graph() const { return graph_; }
  std::uint32_t operator_count() const { return static_cast<std::uint32_t>(operators_.size()); }
  /// The locations that its tensors lie at, in the order of their first use.
  const std::vector<Location>& places() const { return places_; }
  /// By place.
  const std::vector<MemoryUse>& memory() const { return memory_; }
  /// The lanes that its operators run on; an operator's lane in the marked graph is an index into them.
  const std::vector<LaneUse>& lanes() const { return lanes_; }
  /// Bytes of the program's own arrays: without the bound kernels.
  std::size_t structure_bytes() const;

  /// The operator's path: the graph's, or for one that freezing added a path below what it serves.
  std::string path(std::uint32_t op) const;
  std::string_view type(std::uint32_t op) const { return contract(op).type(); }
  Location location(std::uint32_t op) const { return places_[place(op)]; }
  /// True for an operator with nothing to do: its output is its input's bytes, or its inputs were made in
  /// them.
  bool is_view(std::uint32_t op) const { return operators_[op].is_view; }
  /// The type of the elements that an operator computes with.
  DType dtype(std::uint32_t op) const;
  /// True for operators that bring data in from outside.
  bool brings_data(std::uint32_t op) const { return contract(op).brings_samples(); }
  Cost cost(std::uint32_t op) const;
  /// `f32[64, 20, 24, 24] channels_last, f32[20] -> f32[…]`.
  std::string shapes(std::uint32_t op) const;
  /// The contract's attributes: with the type and the shapes, all that its kernel depends on.
  std::string attributes(std::uint32_t op) const { return contract(op).attributes(); }
  /// Which of several algorithms its kernel runs; empty where there is one alone, or nothing to do.
  std::string_view algorithm(std::uint32_t op) const;

  /// Names the memory that the program runs in: for each place `arena + slots` bytes aligned to 64, and one
  /// buffer for each of the graph's variables in their order (null for those of other ranks). Before the
  /// first run, and while nothing runs.
  void bind(std::span<std::byte* const> arenas, std::span<std::byte* const> variables);
  /// How many parts of an operator's kernel there are, and of what each worker that runs some of them makes
  /// for itself: Kernel::parts and kept_bytes. 1 and 0 where no kernel is bound.
  int kernel_parts(std::uint32_t op) const;
  std::size_t kept_bytes(std::uint32_t op) const;
  /// Divides every operator into at most so many parts, at least 1, each of one part of its kernel or several
  /// that follow one another: values stay the same to the bit. Before that a part is a part of the kernel.
  /// Before a dispatcher asks for parts.
  void divide(int most_parts);
  int parts(std::uint32_t op) const;
  /// The parts [begin, end) of its kernel that a part of an operator runs.
  struct PartRange {
    int begin = 0;
    int end = 0;
  };
  PartRange kernel_parts(std::uint32_t op, int part) const;
  /// Scratch memory of `memory().scratch_per_worker` bytes. `kept` as KernelCall::scratch_kept.
  struct Scratch {
    std::byte* memory = nullptr;
    bool kept = false;
  };
  /// Runs a part of an operator.
  /// `shift` is added to all addresses: a device whose kernels see its memory elsewhere than it is named.
  void run(std::uint32_t op, std::int64_t iteration, int part, Scratch scratch, std::ptrdiff_t shift = 0);
  /// An operator that only moves bytes from one place to another over a queue.
  bool is_transfer(std::uint32_t op) const;
  /// What a transfer moves, or an exchange. Addresses are null as long as no memory is bound.
  struct Transfer {
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;
    std::size_t bytes = 0;
  };
  Transfer transfer(std::uint32_t op, std::int64_t iteration) const;
  /// An operator that sends a tensor to another rank or receives one.
  bool is_exchange(std::uint32_t op) const;
  struct Exchange {
    bool sends = false;
    std::int32_t peer = 0;        ///< the other rank
    std::uint32_t channel = 0;    ///< the same number at both ranks, which no other of their exchanges has
    std::byte* memory = nullptr;  ///< null before `bind`
    std::size_t bytes = 0;
  };
  Exchange exchange(std::uint32_t op, std::int64_t iteration) const;
  /// Where an output lies in the arena of its operator's place: in iteration t at `offset + t % slots *
  /// stride`.
  struct PlannedOutput {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t slots = 1;
    std::size_t stride = 0;
  };
  /// Of an operator's outputs those that are not variables.
  std::vector<PlannedOutput> planned_outputs(std::uint32_t op) const;
  /// The logical graph's tensor that an exchange sends or makes.
  Tensor exchanged(std::uint32_t op) const;
  /// Index among lanes() of where an operator runs.
  std::uint32_t lane(std::uint32_t op) const {
    return marked_graph_->lane_at(marked_graph_->position_of(op));
  }
  /// Where a transfer moves bytes from.
  Location source(std::uint32_t op) const { return places_[tensors_[inputs(op)[0] / 2].place]; }
  /// Index among places() of where an operator and its outputs lie.
  std::uint32_t place(std::uint32_t op) const { return operators_[op].place; }

  /// One line an operator: path, type, shapes, layouts, storage, and what it waits for besides its values.
  std::string dump() const;

 private:
  struct OperatorRecord {
    std::uint32_t origin = 0;          // the graph's operator, or below `added_mark` an index into added_
    std::uint32_t first_argument = 0;  // inputs, then outputs
    std::uint16_t input_count = 0;
    std::uint16_t output_count = 0;
    std::uint16_t place = 0;
    bool is_view = false;
  };
  struct Added {
    ContractPtr contract;
    std::string path;
  };
  struct TensorRecord {
    std::size_t offset = 0;  // in the arena; for a variable its index
    std::uint32_t stride =
        0;  // from slot to slot, or from a variable's begin, in units of the storage alignment
    std::uint8_t slots = 1;
    bool is_variable = false;
    std::uint16_t place = 0;
    std::uint32_t origin = 0;  // the graph's tensor
  };
  static constexpr std::uint32_t added_mark = 0x80000000U;

  const Contract& contract(std::uint32_t op) const;
  std::span<const std::uint32_t> inputs(std::uint32_t op) const;
  std::span<const std::uint32_t> outputs(std::uint32_t op) const;
  const TensorInfo& info(std::uint32_t argument) const;
  std::byte* address(std::uint32_t argument, std::int64_t iteration) const;
  /// The same, or null where no memory is bound.
  std::byte* bound_address(std::uint32_t argument, std::int64_t iteration) const {
    return arenas_.empty() ? nullptr : address(argument, iteration);
  }
  void poison(std::span<std::byte> output, const std::uint32_t* arguments,
              std::span<std::byte* const> inputs) const;

  void store(const program::Lowered& lowered, const program::MemoryPlan& plan);
  void bind_kernels(const FreezeOptions& options);
  std::unique_ptr<Kernel> make_kernel_of(std::uint32_t op, const FreezeOptions& options) const;
  std::uint32_t lane_of(std::uint32_t op, std::int32_t rank);
  void set_sends(MarkedGraphBuilder& builder, const program::WholeGraph& whole,
                 double network_bytes_per_second) const;
  void build_marked_graph(const program::Lowered& lowered, const program::MemoryPlan& plan,
                          const program::WholeGraph& whole, const FreezeOptions& options);

  Graph& graph_;
  bool poison_freed_;
  int most_parts_ = std::numeric_limits<int>::max();
  std::unique_ptr<MarkedGraph> marked_graph_;
  std::vector<OperatorRecord> operators_;
  std::vector<Added> added_;
  std::vector<std::uint32_t> arguments_;  // tensor * 2, + 1 where its layout is channels last
  std::vector<TensorRecord> tensors_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // null for an operator that has nothing to do
  std::vector<Location> places_;
  std::vector<LaneUse> lanes_;
  std::vector<MemoryUse> memory_;   // by place
  std::vector<std::byte*> arenas_;  // by place
  std::vector<std::byte*> variables_;
};

}  // namespace purine
