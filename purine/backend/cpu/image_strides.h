// Where the elements of an image batch lie.
#pragma once

#include <cstdint>

#include "purine/graph/contract.h"

namespace purine::cpu {

/// Distances, in elements, of neighbours in each dimension of a tensor [N, C, H, W].
struct ImageStrides {
  std::int64_t sample = 0;
  std::int64_t channel = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;

  ImageStrides(const Shape& shape, Layout layout) : sample(shape[1] * shape[2] * shape[3]) {
    if (layout == Layout::channels_last) {
      channel = 1;
      column = shape[1];
      row = shape[3] * shape[1];
    } else {
      channel = shape[2] * shape[3];
      column = 1;
      row = shape[3];
    }
  }
};

}  // namespace purine::cpu
