#include "purine/backend/cpu/layout.h"

namespace purine::cpu {

std::array<int, Shape::max_rank> memory_order(int rank, Layout layout) {
  if (layout == Layout::channels_last && rank == 4) return {0, 2, 3, 1};
  return {0, 1, 2, 3, 4, 5};
}

Extents strides_of(const Shape& shape, Layout layout) {
  Extents strides{};
  const auto order = memory_order(shape.rank(), layout);
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int dimension = order[static_cast<std::size_t>(i)];
    strides[static_cast<std::size_t>(dimension)] = stride;
    stride *= shape[dimension];
  }
  return strides;
}

AxisView::AxisView(const Shape& shape, Layout layout, int axis) : extent(shape[axis]) {
  const auto order = memory_order(shape.rank(), layout);
  bool inside = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int dimension = order[static_cast<std::size_t>(i)];
    if (dimension == axis) {
      inside = true;
    } else if (inside) {
      inner *= shape[dimension];
    } else {
      outer *= shape[dimension];
    }
  }
}

}  // namespace purine::cpu
