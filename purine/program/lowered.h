// A graph on its way to a program: what runs, in which layout, and which vertices were added on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/program/whole_graph.h"

namespace purine::program {

inline constexpr std::uint32_t none = 0xffffffffU;

struct LoweredTensor {
  TensorInfo info;
  Layout layout = Layout::plain;
  std::uint32_t place = 0;        ///< index into Lowered::places
  std::uint32_t producer = none;  ///< operator; none for variables
  std::uint32_t variable = none;  ///< index among the graph's variables, for a variable's current value
  std::uint32_t origin = none;    ///< the graph's tensor; for a copy in another layout, what it is a copy of
  std::vector<std::uint32_t> consumers;  ///< operators that read it, ascending, each once
};

struct LoweredOperator {
  ContractPtr contract;
  std::vector<std::uint32_t> inputs;
  std::vector<std::uint32_t> outputs;
  std::vector<Layout> input_layouts;  ///< set by assign_layouts
  std::vector<Layout> output_layouts;
  std::uint32_t origin = none;  ///< the graph's operator, none for one that was added
  std::string added_path;       ///< the path of one that was added
  std::uint32_t place = 0;      ///< of the operator and its outputs
  /// Versions kept of each output, in memory of their own; 0: outputs share the arena with other tensors.
  std::uint32_t slots = 0;
};

struct LoweredVariable {
  std::uint32_t tensor = none;  ///< none where nothing that runs touches it
  std::uint32_t next = none;    ///< computed in the variable's own storage; none where it never changes
  /// Where no one operator computes the next value in the variable's storage, but several do, or a receive:
  /// the tensors whose bytes these are, `next` itself or what it concatenates. Each is what overwrites a
  /// slice of the variable of the same bytes, or is received.
  std::vector<std::uint32_t> parts;
};

/// Operators in a topological order within an iteration. Those of the graph, and the halves of its Copies,
/// come in the graph's order.
struct Lowered {
  std::vector<LoweredTensor> tensors;
  std::vector<LoweredOperator> operators;
  std::vector<LoweredVariable> variables;
  std::vector<Location> places;  ///< all locations of tensors, in the order of their first use

  std::uint32_t place_of(Location location);
  std::string path(Graph& graph, std::uint32_t op) const;
  std::vector<TensorInfo> infos(const std::vector<std::uint32_t>& tensors_of) const;
  /// What writes into the storage of a variable that changes.
  std::vector<std::uint32_t> updates(const LoweredVariable& variable) const;
  void find_consumers();
};

struct LowerOptions {
  std::int32_t rank = 0;
  /// What fusion.h finds is one operator.
  bool fuse = true;
};

/// What runs at a rank: the operators there that some variable's next value, some watched tensor or some side
/// effect at any rank depends on; with a host input for every input, a host read for every watched tensor,
/// and an assignment where a next value cannot be computed in its variable's own storage, whole or, as in an
/// update that is divided among ranks, part by part. A Copy from another
/// rank is a `receive`, one to another rank a `send`; what they move from or to an accelerator is staged in
/// its host's memory.
///
/// What is received has memory of its own, so that a receive waits for nothing of its own iteration: it is
/// posted as soon as the versions before are read; but what is a variable's next value comes into the
/// variable's storage, once its readers are done (and see MemoryOptions::received_in_place). Data on their
/// way, and whatever else depends on no variable that changes, can be sent an iteration early and have two
/// slots at both ends, and so has what is staged; anything else, as weights that are gathered in each step,
/// has one.
///
/// Ranks can't deadlock over one another: within an iteration their waits have no cycle. Every rank keeps
/// three kinds of waits without tokens, and each of them follows its `serial_order`: values, readers of a
/// variable before its update in place, and reuse of storage. Between ranks a send and its receive wait for
/// each other, as if they were one operator of both. So a cycle over several ranks enters each of them by a
/// send or a receive and leaves by another one later in that rank's serial order. In each rank's serial
/// order, sends and receives have the order of their Copies in the logical graph, which is the same at all
/// ranks. Along the cycle the Copies' numbers would only grow.
Lowered lower(const WholeGraph& whole, const LowerOptions& options = {});

/// Chooses the layouts and adds reorders between operators that disagree. Without `channels_last` all is
/// plain.
void assign_layouts(Graph& graph, Lowered& lowered, bool channels_last);

/// The order in which one worker would run an iteration: the graph's, but variables are updated, and values
/// handed to the host, as soon as they can be, which frees their inputs; with them goes what alone they wait
/// for and takes no memory of its own, as the check of a gradient. Sends and receives stay in the graph's
/// order among themselves.
std::vector<std::uint32_t> serial_order(const Lowered& lowered);

}  // namespace purine::program
