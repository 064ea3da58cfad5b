// The loops of pooling, for both layouts and all dtypes, in the processor's best vector instructions.
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
  /// Bytes of scratch memory that the functions need.
  std::size_t scratch_bytes() const;
  std::int64_t pooled_elements() const { return channels * out_height * out_width; }
};

/// Each function works on the samples [begin, end) of the batch.
void max_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* index,
              std::byte* scratch, std::int64_t begin, std::int64_t end);
void max_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, const std::byte* index,
                       std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end);
/// An index that points into the padding selects 0.
void max_pool_select(const PoolGeometry& geometry, const std::byte* x, const std::byte* index, std::byte* y,
                     std::int64_t begin, std::int64_t end);
void average_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* scratch,
                  std::int64_t begin, std::int64_t end);
void average_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, std::byte* dx,
                           std::byte* scratch, std::int64_t begin, std::int64_t end);

}  // namespace purine::cpu
