#include "purine/train/step_error.h"

#include <fmt/format.h>

#include <cstdint>

namespace purine::train {

Error step_error(const IterationError& error) {
  const Error& cause = error.cause();
  const std::int64_t step = error.iteration() + 1;
  if (cause.component() == "check_finite") {
    return Error("training", fmt::format("step {}: {}, so the step was not taken", step, cause.message()),
                 "training has diverged: try a lower optimizer.learning_rate, a longer "
                 "optimizer.warmup_epochs, or gradient clipping (optimizer.clip_norm)");
  }
  return Error(cause.component(), fmt::format("{} (step {})", cause.message(), step), cause.hint())
      .at(cause.path())
      .on(cause.location());
}

}  // namespace purine::train
