// Choosing how every operator of a graph is divided over a mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/parallel/spec.h"

namespace purine::parallel {

/// How an operator is divided along one axis of a mesh.
struct Division {
  bool divided = false;  ///< false: every coordinate runs it whole
  SplitRule rule;        ///< the rule for the whole operator, as its contract gives it
  /// What is divided: as many units or a divisor of the rule's, each then holding several of the rule's.
  std::int64_t units = 0;
  int first = 0;  ///< the coordinate that has the first units

  /// How it needs an input, and leaves an output.
  Placement input(int index) const;
  Placement output(int index) const;
};

struct Plan {
  std::vector<std::vector<Division>> operators;  ///< by operator, by axis
  std::vector<Spec> results;                     ///< by tensor: as its producer leaves it
  std::vector<Spec> tensors;  ///< by tensor: as it lies from then on; another one only where that was said
};

/// How an operator needs an input: as it is divided, except that what is the same everywhere serves where an
/// approximation would.
Spec needed_spec(const Plan& plan, Operator op, int input);

/// How many bytes a location sends to bring a tensor of `bytes` bytes from one placement to another along an
/// axis of n coordinates.
double reshard_bytes(const Placement& from, const Placement& to, double bytes, int n);

/// True if both place the same elements at the same coordinates, where no other axis splits the dimension.
bool same_placement(const Mesh& mesh, int axis, const Placement& a, const Placement& b);
/// True if two specs lie alike along an axis, and along all.
bool same_on_axis(const Mesh& mesh, int axis, const Spec& a, const Spec& b);
bool same_spec(const Mesh& mesh, const Spec& a, const Spec& b);

/// Goes through the operators in their order and decides, axis by axis, by which rule each is divided: first
/// of all such that nothing has to be sent for its inputs and for the variables whose next values it makes,
/// then such that the fewest bytes are sent for these and by its readers. Of equals, the one with fewer
/// conversions, and then with less to compute. A decision looks at an operator and its readers; nothing is
/// taken back. Rules that are not exact (statistics of a batch for each piece) count as the others.
///
/// With `synchronize_batch_normalization` they are: batch normalisation then is divided by its exact rules
/// alone, of which one is a composition (synchronized.h).
Plan make_plan(Graph& graph, const Specs& specs, bool synchronize_batch_normalization = false);

}  // namespace purine::parallel
