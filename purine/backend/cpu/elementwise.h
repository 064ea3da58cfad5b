// Loops over elements for the CPU's kernels, divided into parts that workers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace purine::cpu {

/// How many parts an element-wise kernel of this size has: depends on the size alone, so that results never
/// depend on the number of workers. Small kernels stay whole, since a part costs about a microsecond.
inline int elementwise_parts(std::int64_t elements) {
  return static_cast<int>(std::clamp<std::int64_t>(elements / 65536, 1, 8));
}

/// Elements [first, second) of part `part` of `parts`, in multiples of 16 elements (a cache line of f32).
inline std::pair<std::int64_t, std::int64_t> part_range(std::int64_t elements, int part, int parts) {
  const std::int64_t lines = (elements + 15) / 16;
  const std::int64_t begin = lines * part / parts * 16;
  const std::int64_t end = std::min(elements, lines * (part + 1) / parts * 16);
  return {std::min(begin, elements), end};
}

}  // namespace purine::cpu
