// The sizes of a pooling, as its loops need them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "purine/graph/contract.h"
#include "purine/ops/pooling.h"

namespace purine::cpu {

/// A pooling of images [N, channels, height, width] into [N, channels, out_height, out_width].
struct PoolGeometry {
  PoolGeometry(const Shape& image, const Shape& pooled, const ops::Pool2dOptions& options, Layout layout,
               DType dtype);

  /// Channels that planes are interleaved by: the longest vector of f32.
  static constexpr std::int64_t block = 16;

  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
  std::int64_t out_height;
  std::int64_t out_width;
  ops::Window vertical;
  ops::Window horizontal;
  bool count_include_pad;
  Layout layout;
  DType dtype;
  DType index_dtype;  ///< of the maxima's indices

  std::int64_t image_elements() const { return channels * height * width; }
  std::int64_t pooled_elements() const { return channels * out_height * out_width; }
  /// Bytes of scratch memory that the loops need.
  std::size_t scratch_bytes() const;
};

}  // namespace purine::cpu
