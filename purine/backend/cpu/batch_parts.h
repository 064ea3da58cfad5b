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

/// How many parts a convolution divides `batch` units into, by its operations and its output's pixels.
inline int convolution_parts(std::int64_t batch, double operations, double pixels) {
  constexpr double least_operations = 4e6;  // some ten microseconds
  // A worker that begins with a convolution may have to bring the weights into the primitive's format, about
  // 0.3 ns an element; with this many pixels a part, that is about 4% of the part's time. Fewer parts, for
  // the last images of a residual network, of 7 x 7, would leave all workers but one without work.
  constexpr double least_pixels = 390;
  return std::min(batch_parts(batch, operations, least_operations), batch_parts(batch, pixels, least_pixels));
}

/// Samples [first, second) of a part.
inline std::pair<std::int64_t, std::int64_t> batch_range(std::int64_t batch, int part, int parts) {
  return {batch * part / parts, batch * (part + 1) / parts};
}

}  // namespace purine::cpu
