#include "purine/ops/excerpt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "purine/ops/contract_helpers.h"

namespace purine::ops {

std::string Excerpt::text() const {
  const std::span<const std::int64_t> offsets(begin.data(), static_cast<std::size_t>(whole.rank()));
  return fmt::format(" whole={} begin={}", whole.text(), offsets);
}

std::optional<Excerpt> piece_excerpt(const std::optional<Excerpt>& excerpt, const Shape& shape, int dimension,
                                     const SplitRule& rule, const Piece& piece) {
  if (!excerpt && piece.begin == 0 && piece.end == piece.units) return std::nullopt;
  Excerpt result;
  if (excerpt) {
    result = *excerpt;
  } else {
    result.whole = shape;
    result.whole.set(dimension, piece_extent(shape[dimension], rule, {0, piece.units, piece.units}));
  }
  result.begin[static_cast<std::size_t>(dimension)] +=
      piece_extent(shape[dimension], rule, {0, piece.begin, piece.units});
  return result;
}

}  // namespace purine::ops
