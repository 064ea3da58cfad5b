// Products of small matrices that lie in the cache, or come into it meanwhile: what our own convolutions are
// made of.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// Columns are handled in panels of at most this many, always a multiple of `panel_quantum`, whatever the
/// instruction set: with AVX-512 one, two or three vectors.
constexpr std::int64_t most_panel_columns = 48;
constexpr std::int64_t panel_quantum = 16;

/// Rows of memory that are brought into the cache, a line at a time, while something else is computed: what
/// is needed next, so that nobody waits for it then.
class ReadAhead {
 public:
  /// None.
  ReadAhead() = default;
  /// `rows` rows of `floats` floats, `row_step` floats from one to the next.
  ReadAhead(const float* first, std::int64_t rows, std::int64_t floats, std::int64_t row_step)
      : line_(first),
        rows_left_(floats > 0 ? rows : 0),
        lines_((floats + line_floats - 1) / line_floats),
        lines_left_(lines_),
        to_next_row_(row_step - lines_ * line_floats) {}

  bool done() const { return rows_left_ == 0; }
  /// Brings one more line, if any is left.
  void next() {
    if (done()) return;
    __builtin_prefetch(line_);
    line_ += line_floats;
    if (--lines_left_ > 0) return;
    lines_left_ = lines_;
    line_ += to_next_row_;
    --rows_left_;
  }

 private:
  static constexpr std::int64_t line_floats = 16;

  const float* line_ = nullptr;
  std::int64_t rows_left_ = 0;
  std::int64_t lines_ = 0;  ///< of a row
  std::int64_t lines_left_ = 0;
  std::int64_t to_next_row_ = 0;
};

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

/// With `ahead` for what does not lie in the cache: brings lines of it, as many as it comes to, and the rows
/// of C before they are written.
void multiply_panel(const PanelProduct& product, ReadAhead* ahead = nullptr);

}  // namespace purine::cpu
