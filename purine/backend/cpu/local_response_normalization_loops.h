// The loops of local response normalisation across channels, in the processor's best vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "purine/graph/contract.h"
#include "purine/ops/local_response_normalization.h"

namespace purine::cpu {

/// Samples of `channels` planes of `pixels` elements each.
struct ResponseGeometry {
  std::int64_t channels;
  std::int64_t pixels;
  bool channels_last;  ///< else the channels' planes lie one after the other
  DType dtype;
  ops::LocalResponseNormalizationOptions options;

  /// Bytes of scratch memory that the functions need.
  std::size_t scratch_bytes() const;
};

/// Both work on the samples [begin, end) of the batch.
void normalize_responses(const ResponseGeometry& geometry, const std::byte* x, std::byte* y,
                         std::byte* scratch, std::int64_t begin, std::int64_t end);
void normalize_responses_gradient(const ResponseGeometry& geometry, const std::byte* dy, const std::byte* x,
                                  std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end);

}  // namespace purine::cpu
