// In which order the stages of a pipeline do their work.
#pragma once

#include <cstdint>
#include <vector>

namespace purine::parallel {

/// What an operator belongs to.
enum class Phase : std::uint8_t {
  forward,          ///< all that doesn't depend on the gradient
  backward,         ///< gradients that others are computed from
  weight_gradient,  ///< what leads to the variables of one operator alone: nobody waits for it but their
                    ///< update
  update,           ///< all that depends on gradients and is none
};

/// All operators of a phase at a stage for one micro-batch.
struct Task {
  Phase phase = Phase::forward;
  int stage = 0;
  int micro_batch = 0;
  bool operator==(const Task& other) const = default;
};

/// How many micro-batches may be between forward and backward at a stage: stages - stage, or all.
int micro_batches_in_flight(int stages, int micro_batches, int stage);

/// The tasks of a batch in the order in which equally long ones would be done. At each stage that is: forward
/// for as many micro-batches as may be in flight, then in turn one backward and one forward, then the
/// remaining backwards. A weight gradient comes after the forward that follows its backward. Worked example,
/// 2 stages, 3 micro-batches: stage 0 does F0 F1 B0 F2 W0 B1 W1 B2 W2, stage 1 F0 B0 F1 W0 B1 F2 W1 B2 W2.
std::vector<Task> one_forward_one_backward(int stages, int micro_batches);

}  // namespace purine::parallel
