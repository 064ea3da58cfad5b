// Errors of operators, with the iteration they happened in.
#pragma once

#include <cstdint>

#include "purine/core/error.h"

namespace purine {

/// What a session throws when an operator failed: the operator's error, whose text ends in `(iteration 3)`,
/// for those who count otherwise.
class IterationError final : public Error {
 public:
  IterationError(Error cause, std::int64_t iteration);

  /// The error without the iteration.
  const Error& cause() const { return cause_; }
  /// Counted from 0, as Step::index.
  std::int64_t iteration() const { return iteration_; }

 private:
  Error cause_;
  std::int64_t iteration_;
};

}  // namespace purine
