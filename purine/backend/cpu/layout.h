// Where the elements of a tensor lie, dimension by dimension.
#pragma once

#include <array>
#include <cstdint>

#include "purine/graph/contract.h"

namespace purine::cpu {

using Extents = std::array<std::int64_t, Shape::max_rank>;

/// The dimensions of a tensor from the outermost to the innermost in memory.
std::array<int, Shape::max_rank> memory_order(int rank, Layout layout);
/// Distances, in elements, of neighbours in each dimension.
Extents strides_of(const Shape& shape, Layout layout);

/// A tensor as [outer, extent, inner] in memory around one of its dimensions: the elements of the dimension
/// lie `inner` apart.
struct AxisView {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;

  AxisView(const Shape& shape, Layout layout, int axis);
};

}  // namespace purine::cpu
