// The loops of batch normalisation, in the processor's best vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "purine/core/dtype.h"

namespace purine::cpu {

/// A tensor [samples, channels, pixels], or with the channels last in memory [samples, pixels, channels].
struct ChannelGeometry {
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t pixels;
  bool channels_last;
  DType dtype;
  double epsilon;
  bool relu;  ///< y is rectified

  std::int64_t elements_per_channel() const { return samples * pixels; }
  /// Bytes of scratch memory that the functions need for this many channels.
  std::size_t scratch_bytes(std::int64_t count) const;
};

// Each function works on the channels [begin, end). A tensor that is written may be one that is read.

/// Mean and variance (divided by n), by one pass: sums of the distances from the channel's first element and
/// of their squares, which lose nothing as long as that element is within some deviations of the mean. Sums
/// of many elements are made in f64.
void batch_statistics(const ChannelGeometry& geometry, const std::byte* x, std::byte* mean,
                      std::byte* variance, std::byte* scratch, std::int64_t begin, std::int64_t end);

/// y = scale * (x - mean) / sqrt(variance + epsilon) + shift, and `summand` where there is one, or 0 where
/// that is below and y is rectified.
void batch_normalize(const ChannelGeometry& geometry, const std::byte* x, const std::byte* scale,
                     const std::byte* shift, const std::byte* mean, const std::byte* variance,
                     const std::byte* summand, std::byte* y, std::byte* scratch, std::int64_t begin,
                     std::int64_t end);

/// The gradients of batch_normalize by x, scale and shift. With `through_statistics`, mean and variance are
/// those of x and the gradient flows through them too:
///   dx = scale / s * (dy - mean of dy - (x - mean) / s^2 * mean of dy * (x - mean)), s = sqrt(variance +
///   epsilon).
/// Of a rectified y, dy counts where y is above 0, which takes `shift` to tell.
void batch_normalize_gradient(const ChannelGeometry& geometry, const std::byte* dy, const std::byte* x,
                              const std::byte* scale, const std::byte* shift, const std::byte* mean,
                              const std::byte* variance, bool through_statistics, std::byte* dx,
                              std::byte* dscale, std::byte* dshift, std::byte* scratch, std::int64_t begin,
                              std::int64_t end);

}  // namespace purine::cpu
