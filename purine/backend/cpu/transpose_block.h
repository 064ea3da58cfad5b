// Transposing matrices in blocks that fit the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace purine::cpu {

/// y[c * y_step + r] = x[r * x_step + c] for all rows r and columns c. Blocks of 16 x 16 elements: reads and
/// writes both use whole cache lines.
template <typename T>
void transpose_block(const T* x, std::int64_t x_step, T* y, std::int64_t y_step, std::int64_t rows,
                     std::int64_t columns) {
  constexpr std::int64_t block = 16;
  for (std::int64_t column = 0; column < columns; column += block) {
    const std::int64_t column_end = std::min(columns, column + block);
    for (std::int64_t row = 0; row < rows; row += block) {
      const std::int64_t row_end = std::min(rows, row + block);
      for (std::int64_t c = column; c < column_end; ++c) {
        for (std::int64_t r = row; r < row_end; ++r) y[c * y_step + r] = x[r * x_step + c];
      }
    }
  }
}

/// Calls function(T{}) with an unsigned integer of the size of an element: what only moves elements needs no
/// more of their type.
template <typename Function>
decltype(auto) with_element_size(std::size_t size, Function&& function) {
  if (size == 1) return function(std::uint8_t{});
  if (size == 8) return function(std::uint64_t{});
  return function(std::uint32_t{});
}

}  // namespace purine::cpu
