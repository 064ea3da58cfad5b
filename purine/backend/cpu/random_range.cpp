#include "purine/backend/cpu/random_range.h"

namespace purine::cpu {

NumberedRows::NumberedRows(const Shape& shape, Layout layout, const std::optional<ops::Excerpt>& excerpt) {
  const Extents numbers = (excerpt ? excerpt->whole : shape).strides();
  const auto order = memory_order(shape.rank(), layout);
  for (int i = 0; i < shape.rank(); ++i) {
    const auto dimension = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
    rows.add(shape[static_cast<int>(dimension)], {numbers[dimension]});
    if (excerpt) first += excerpt->begin[dimension] * numbers[dimension];
  }
}

}  // namespace purine::cpu
