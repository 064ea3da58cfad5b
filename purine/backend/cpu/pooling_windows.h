// Which elements of an image pooling's windows cover, along one dimension.
#pragma once

#include <algorithm>
#include <cstdint>

#include "purine/ops/pooling.h"

namespace purine::cpu {

/// The elements of the image that a window covers, [begin, end), and which element of the window the first
/// is.
struct Cover {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;
};
inline Cover cover_of(const ops::Window& window, std::int64_t extent, std::int64_t position) {
  const std::int64_t start = position * window.stride - window.before;
  const std::int64_t begin = std::max<std::int64_t>(start, 0);
  return {begin, std::min(start + window.kernel, extent), begin - start};
}

/// The results whose windows cover an element along one dimension, [begin, end), from element 0 on. Goes from
/// element to element without dividing.
class Covering {
 public:
  Covering(const ops::Window& window, std::int64_t positions)
      : stride_(window.stride),
        positions_(positions),
        at_(window.before),
        begin_(at_ < window.kernel ? 0 : (at_ - window.kernel) / stride_ + 1),
        end_(at_ / stride_ + 1),
        next_begin_(window.kernel + begin_ * stride_),
        next_end_(end_ * stride_) {}

  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::int64_t end() const { return std::min(positions_, end_); }

  void advance() {
    ++at_;
    if (at_ == next_begin_) {
      ++begin_;
      next_begin_ += stride_;
    }
    if (at_ == next_end_) {
      ++end_;
      next_end_ += stride_;
    }
  }

 private:
  std::int64_t stride_;
  std::int64_t positions_;
  // The element's place in the padded image, and those where the next window ends before it, and begins.
  std::int64_t at_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t next_begin_;
  std::int64_t next_end_;
};

/// Elements of a window that an average counts: those of the image, or with `include_pad` the padding's too.
inline std::int64_t counted(const ops::Window& window, std::int64_t extent, std::int64_t position,
                            bool include_pad) {
  const std::int64_t start = position * window.stride - window.before;
  const std::int64_t end = start + window.kernel;
  if (include_pad) return std::min(end, extent + window.after) - start;
  return std::min(end, extent) - std::max<std::int64_t>(start, 0);
}

}  // namespace purine::cpu
