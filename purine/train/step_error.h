// Errors of training steps, for those who train.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "purine/runtime/endpoint.h"
#include "purine/session/iteration_error.h"

namespace purine::train {

/// The error of a step, counted from 1, that made numbers which are not finite: `step 3: the loss is NaN, …`.
Error divergence(std::int64_t step, std::string_view what);

/// The error of a step in the words of those who train: steps count from 1, and a value that is not finite is
/// no matter of the operator that found it, but of the step, the tensor and what to try.
Error step_error(const IterationError& error);
/// The same of what another rank's failure ended: `(iteration 3)`, where it has that, becomes `(step 4)`, and
/// where it doesn't say when, `(after step 3)` is added.
RemoteError step_error(const RemoteError& error, std::int64_t steps_done);
/// With other words in place of `iteration 3`.
RemoteError renumbered(const RemoteError& error,
                       const std::function<std::string(std::int64_t iteration)>& words);

}  // namespace purine::train
