// Random values for ranges of neighbouring elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "purine/backend/cpu/strided_rows.h"
#include "purine/core/random.h"
#include "purine/ops/excerpt.h"

namespace purine::cpu {

/// Calls function(i, element of a block, block) for the elements first + i, i = 0 … count - 1, with
/// make_block(number) made once for each four of them.
template <typename MakeBlock, typename Function>
void for_blocks(std::uint64_t first, std::int64_t count, const MakeBlock& make_block,
                const Function& function) {
  std::int64_t i = 0;
  while (i < count) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    const auto block = make_block(element / 4);
    const auto begin = static_cast<std::int64_t>(element % 4);
    const std::int64_t n = std::min(4 - begin, count - i);
    for (std::int64_t k = 0; k < n; ++k) function(i + k, block[static_cast<std::size_t>(begin + k)]);
    i += n;
  }
}

/// The elements of a tensor, in the order in which they lie in memory, with their numbers in the whole
/// tensor: its own numbers, or those of the larger tensor that it is an excerpt of. The numbers of a row
/// follow at the row's stride from `first` plus the row's offset.
struct NumberedRows {
  StridedRows<1> rows;
  std::int64_t first = 0;

  NumberedRows(const Shape& shape, Layout layout, const std::optional<ops::Excerpt>& excerpt);
};

}  // namespace purine::cpu
