// What training would be like if a job that was traced were another one.
#pragma once

#include <optional>
#include <span>

#include "purine/trace/trace.h"
#include "purine/trace/why.h"

namespace purine::train {

/// Simulates the run of the traces, sorted by rank, as it was, with a batch twice as large, and in each other
/// scheme that its devices allow. Operators take what the traces say, those that they don't have as much as
/// the most alike of their type (`sim::SimulationOptions::costs`). What can't be, for want of memory or
/// because a scheme doesn't suit the network, is left out. Nothing where the traces don't describe the run,
/// or it used devices that can't be simulated.
std::optional<trace::SimulatedRun> simulate_changes(std::span<const trace::Trace> ranks);

/// The speed of the network that the ranks of the traces had, as the cluster says that one of them describes;
/// no links where none does.
trace::NetworkSpeed network_of(std::span<const trace::Trace> ranks);

}  // namespace purine::train
