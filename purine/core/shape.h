// The extents of a tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "purine/core/dtype.h"

namespace purine {

/// The extents of a tensor, outermost first; rank 0 is a scalar. Images are N, C, H, W.
/// A value type without allocation; at most `max_rank` dimensions, each at least 0 (a larger rank or a
/// negative extent throws Error).
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// The extent of dimension `index`; the index is checked.
  std::int64_t operator[](int index) const;
  void set(int index, std::int64_t extent);
  /// The number of elements; 1 for a scalar.
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }

  /// Row-major strides in elements.
  std::array<std::int64_t, max_rank> strides() const;
  /// `[64, 1, 28, 28]`; a scalar is `[]`.
  std::string text() const;

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

/// What is known of a tensor before anything runs.
struct TensorInfo {
  Shape shape;
  DType dtype = DType::f32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  /// `f32[64, 1, 28, 28]`.
  std::string text() const;
  bool operator==(const TensorInfo& other) const = default;
};

}  // namespace purine
