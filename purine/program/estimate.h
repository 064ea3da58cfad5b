// Estimates of time from what is known before anything runs.
#pragma once

#include <utility>
#include <vector>

#include "purine/graph/graph.h"

namespace purine::program {

/// What handing an operator, or a part of one, to a worker takes.
constexpr double start_seconds = 1e-6;
/// What a core takes to read and write bytes in main memory.
double estimate_bytes_seconds(double bytes);
/// Roughly the seconds of an operator, enough to rank operators: a roofline of one core, and the price of a
/// start.
double estimate_seconds(const Cost& cost);
/// Of a message between two ranks, over a network that carries so much from each of them.
double estimate_message_seconds(double bytes, double bytes_per_second);

/// How long an iteration goes on after a tensor is there.
struct Remaining {
  float in_last = 0;   ///< in the last of two iterations
  float in_first = 0;  ///< in the first: into the second one too, through variables
};

/// By the graph's tensor, what remains of two iterations once it is there: the longest chain of operators
/// behind it, at whatever rank they are. It is what a rank that lowers its own part alone can't see behind
/// what it sends.
std::vector<Remaining> remaining_after(Graph& graph, double network_bytes_per_second);

}  // namespace purine::program
