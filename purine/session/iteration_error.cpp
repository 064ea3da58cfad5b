#include "purine/session/iteration_error.h"

#include <string>
#include <utility>

namespace purine {

IterationError::IterationError(Error cause, std::int64_t iteration)
    : Error(Error(cause.component(), cause.message() + " (iteration " + std::to_string(iteration) + ")",
                  cause.hint())
                .at(cause.path())
                .on(cause.location())),
      cause_(std::move(cause)),
      iteration_(iteration) {}

}  // namespace purine
