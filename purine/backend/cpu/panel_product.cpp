#include "purine/backend/cpu/panel_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// A block's sums stay in registers: with 32 of them 8 rows of 3 vectors, with 16 of them 4 rows.
constexpr int most_rows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int most_vectors = 3;

/// One block of `Rows` rows and `Vectors` vectors of columns.
template <int Rows, int Vectors, bool RowsAdjacent>
void multiply_block(const PanelProduct& p, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                    float* HWY_RESTRICT c, ReadAhead* ahead) {
  const hn::ScalableTag<float> d;
  using Vector = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Vector sums[Rows][Vectors];
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(d);
  }
  const std::int64_t a_row = RowsAdjacent ? 1 : p.a_row;
  const std::int64_t a_depth = RowsAdjacent ? p.a_depth : 1;
  // Of what comes ahead a line for every other step, with AVX-512 one in some 48 cycles. Of C the next block.
  ReadAhead lines = ahead != nullptr ? *ahead : ReadAhead();
  const int rows_ahead = ahead != nullptr ? Rows : 0;
  const float* next_row = c + Rows * p.c_row;
  for (std::int64_t k = 0; k < p.depth; ++k) {
    if (k % 2 == 0) lines.next();
    if (k < rows_ahead) {
      for (int v = 0; v < Vectors; ++v) __builtin_prefetch(next_row + v * lanes, 1);
      next_row += p.c_row;
    }
    Vector columns[Vectors];
    for (int v = 0; v < Vectors; ++v) columns[v] = hn::Load(d, b + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector factor = hn::Set(d, a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
    a += a_depth;
    b += p.columns;
  }
  if (ahead != nullptr) *ahead = lines;
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + r * p.c_row + v * lanes;
      hn::StoreU(p.add_to_c ? hn::Add(hn::LoadU(d, to), sums[r][v]) : sums[r][v], d, to);
    }
  }
}

using Block = void (*)(const PanelProduct&, const float*, const float*, float*, ReadAhead*);

/// All blocks of one width, by their number of rows less one.
template <int Vectors, bool RowsAdjacent, std::size_t... Less>
constexpr std::array<Block, sizeof...(Less)> blocks(std::index_sequence<Less...>) {
  return {multiply_block<static_cast<int>(Less) + 1, Vectors, RowsAdjacent>...};
}

template <bool RowsAdjacent>
constexpr std::array<std::array<Block, most_rows>, most_vectors> blocks_by_width = {
    blocks<1, RowsAdjacent>(std::make_index_sequence<most_rows>()),
    blocks<2, RowsAdjacent>(std::make_index_sequence<most_rows>()),
    blocks<3, RowsAdjacent>(std::make_index_sequence<most_rows>())};

void multiply(const PanelProduct& p, ReadAhead* ahead) {
  const bool rows_adjacent = p.a_row == 1;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t vectors = p.columns / lanes;
  // Blocks of nearly equal size: a small one would leave multiply-adds waiting for one another.
  const std::int64_t column_blocks = (vectors + most_vectors - 1) / most_vectors;
  const std::int64_t row_blocks = (p.rows + most_rows - 1) / most_rows;
  for (std::int64_t j = 0; j < column_blocks; ++j) {
    const std::int64_t first_vector = vectors * j / column_blocks;
    const std::int64_t width = vectors * (j + 1) / column_blocks - first_vector;
    const auto& by_rows =
        (rows_adjacent ? blocks_by_width<true> : blocks_by_width<false>)[static_cast<std::size_t>(width - 1)];
    for (std::int64_t i = 0; i < row_blocks; ++i) {
      const std::int64_t first_row = p.rows * i / row_blocks;
      const std::int64_t height = p.rows * (i + 1) / row_blocks - first_row;
      by_rows[static_cast<std::size_t>(height - 1)](p, p.a + first_row * p.a_row, p.b + first_vector * lanes,
                                                    p.c + first_row * p.c_row + first_vector * lanes, ahead);
    }
  }
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(multiply);

void multiply_panel(const PanelProduct& product, ReadAhead* ahead) {
  HWY_DYNAMIC_DISPATCH(multiply)(product, ahead);
}

}  // namespace purine::cpu
#endif
