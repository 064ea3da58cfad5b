// Walks over a tensor in one order while others are followed by strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "purine/backend/cpu/layout.h"

namespace purine::cpu {

/// A nest of loops, and for each of `operands` tensors the distance of neighbours in each loop. Nested loops
/// that every operand walks through as one are merged, so that the innermost loop is as long as it can be.
/// Example, a [2, 3, 4] plus b [4]: loops of 6 and 4; a has strides 4 and 1, b has 0 and 1.
template <int operands>
class StridedRows {
 public:
  using Strides = std::array<std::int64_t, operands>;

  /// Adds a loop inside of those added before.
  void add(std::int64_t extent, const Strides& strides) {
    elements_ *= extent;
    if (extent == 1) return;
    if (rank_ > 0) {
      const auto last = static_cast<std::size_t>(rank_ - 1);
      bool merges = true;
      for (std::size_t i = 0; i < operands; ++i) merges = merges && strides_[last][i] == strides[i] * extent;
      if (merges) {
        extents_[last] *= extent;
        strides_[last] = strides;
        return;
      }
    }
    extents_[static_cast<std::size_t>(rank_)] = extent;
    strides_[static_cast<std::size_t>(rank_)] = strides;
    ++rank_;
  }

  std::int64_t elements() const { return elements_; }
  /// Length and strides of the innermost loop; 1 and 0 where there is none.
  std::int64_t row() const { return rank_ == 0 ? 1 : extents_[static_cast<std::size_t>(rank_ - 1)]; }
  Strides row_strides() const {
    return rank_ == 0 ? Strides{} : strides_[static_cast<std::size_t>(rank_ - 1)];
  }

  /// Calls function(position, offsets, count) for pieces of rows that cover elements [begin, end): `position`
  /// counts elements in the order of the loops, `offsets` is where the piece begins in each operand.
  template <typename Function>
  void run(std::int64_t begin, std::int64_t end, Function&& function) const {
    if (begin >= end) return;
    const std::int64_t length = row();
    const Strides inner = row_strides();
    std::int64_t place = begin % length;
    Extents index{};
    Strides offsets{};
    std::int64_t rest = begin / length;
    for (int i = rank_ - 2; i >= 0; --i) {
      const auto loop = static_cast<std::size_t>(i);
      index[loop] = rest % extents_[loop];
      rest /= extents_[loop];
      for (std::size_t k = 0; k < operands; ++k) offsets[k] += index[loop] * strides_[loop][k];
    }
    for (std::int64_t position = begin; position < end;) {
      const std::int64_t count = std::min(length - place, end - position);
      Strides at = offsets;
      for (std::size_t k = 0; k < operands; ++k) at[k] += place * inner[k];
      function(position, at, count);
      position += count;
      place = 0;
      for (int i = rank_ - 2; i >= 0; --i) {
        const auto loop = static_cast<std::size_t>(i);
        for (std::size_t k = 0; k < operands; ++k) offsets[k] += strides_[loop][k];
        if (++index[loop] < extents_[loop]) break;
        for (std::size_t k = 0; k < operands; ++k) offsets[k] -= strides_[loop][k] * extents_[loop];
        index[loop] = 0;
      }
    }
  }

 private:
  int rank_ = 0;
  std::int64_t elements_ = 1;
  Extents extents_{};
  std::array<Strides, Shape::max_rank> strides_{};
};

}  // namespace purine::cpu
