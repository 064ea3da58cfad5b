// Where a piece lies in the whole tensor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "purine/graph/contract.h"

namespace purine::ops {

/// A tensor's place within a larger one. Random operators draw by the element's number in the whole tensor,
/// so that a split tensor has the same values. Example: rows 2 and 3 of a [4, 5] tensor are {whole [4, 5],
/// begin {2, 0}}, and their element [0, 1] has the number 11.
struct Excerpt {
  Shape whole;
  std::array<std::int64_t, Shape::max_rank> begin{};

  /// ` whole=[4, 5] begin=[2, 0]`: for attribute texts.
  std::string text() const;
};

/// The excerpt that a piece of a tensor of this shape, which is itself an excerpt of a larger one if there is
/// one. A piece that is all of the tensor, of whatever size, needs none.
std::optional<Excerpt> piece_excerpt(const std::optional<Excerpt>& excerpt, const Shape& shape, int dimension,
                                     const SplitRule& rule, const Piece& piece);

}  // namespace purine::ops
