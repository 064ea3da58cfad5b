// Cutting a graph into the stages of a pipeline.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/schedule.h"

namespace purine::parallel {

/// Where everything of a graph is in a pipeline.
struct Stages {
  int count = 0;
  std::vector<int> operators;  ///< the stage, by operator
  std::vector<Phase> phases;   ///< by operator
  std::vector<int> variables;  ///< the stage, by tensor; -1 for what is no variable
};

/// Cuts a row of items into `stages` runs of at least one item, such that the costliest run costs as little
/// as can be; of such cuts one with the least sum of squares, so that the others are even too, and of those
/// the one whose first runs are the longest: 30 equal items over 4 stages are 8, 8, 7, 7. Returns the runs'
/// numbers of items. With `shares`, a number for each run, a run's cost is taken by its share: shares 2 and 1
/// cut 30 equal items into 20 and 10. Throws Error if there are fewer items than stages, a cost is negative
/// or no number, or there isn't a positive share for each run. Takes time in the order of items * items *
/// stages.
std::vector<int> divide_into_stages(std::span<const double> costs, int stages,
                                    std::span<const double> shares = {});

/// What an operator takes by its contract's cost, roughly in seconds of a core; 0 for one that brings
/// samples.
double estimated_cost(Operator op);

/// Cuts the operators that don't depend on the gradient, in the graph's order, by what they and their
/// gradients cost. Gradients (what purine/gradient added: operators below a scope `gradient`) are where what
/// they are computed from and what they lead to is, updates where the variable is, and a variable is where it
/// is first read. `shares` as for divide_into_stages.
Stages assign_stages(Graph& graph, int stages, const std::function<double(Operator)>& cost,
                     std::span<const double> shares = {});

}  // namespace purine::parallel
