// Products of small matrices that lie in the cache: what Winograd convolutions are made of.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// Columns are handled in panels of at most this many, always a multiple of `panel_quantum`, whatever the
/// instruction set: with AVX-512 one, two or three vectors.
constexpr std::int64_t most_panel_columns = 48;
constexpr std::int64_t panel_quantum = 16;

/// C = A B, or C + A B, in f32 with
///
///   A(r, k) = a[r * a_row + k * a_depth], where a_row or a_depth is 1,
///   B(k, j) = b[k * columns + j],
///   C(r, j) = c[r * c_row + j]
///
/// for `columns` columns (panel_quantum, twice or three times that). Every element is one sum over k in
/// ascending order, whatever the rows around it, which `add_to_c` adds to what C holds.
struct PanelProduct {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_depth = 0;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  bool add_to_c = false;
};

void multiply_panel(const PanelProduct& product);

}  // namespace purine::cpu
