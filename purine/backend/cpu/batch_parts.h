// Kernels that divide their work over the batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace purine::cpu {

/// How many parts a kernel divides a batch into: at most 8, none empty, and each with at least `least` of the
/// `total` work, so that handing it to a worker (about a microsecond) does not matter. At least one.
inline int batch_parts(std::int64_t batch, double total, double least) {
  const double worthwhile = std::min(total / least, 8.0);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(batch, static_cast<std::int64_t>(worthwhile))));
}

/// Samples [first, second) of a part.
inline std::pair<std::int64_t, std::int64_t> batch_range(std::int64_t batch, int part, int parts) {
  return {batch * part / parts, batch * (part + 1) / parts};
}

}  // namespace purine::cpu
