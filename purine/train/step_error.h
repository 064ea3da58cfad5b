// Errors of training steps, for those who train.
#pragma once

#include "purine/session/iteration_error.h"

namespace purine::train {

/// The error of a step in the words of those who train: steps count from 1, and a value that is not finite is
/// no matter of the operator that found it, but of the step, the tensor and what to try.
Error step_error(const IterationError& error);

}  // namespace purine::train
