#include "purine/core/shape.h"

#include <algorithm>

#include "purine/core/error.h"

namespace purine {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > max_rank) {
    throw Error("shape",
                "rank " + std::to_string(extents.size()) + " is above the most, " + std::to_string(max_rank));
  }
  rank_ = static_cast<int>(extents.size());
  for (int i = 0; i < rank_; ++i) set(i, extents[static_cast<std::size_t>(i)]);
}

std::int64_t Shape::operator[](int index) const {
  if (index < 0 || index >= rank_) {
    throw Error("shape", "dimension " + std::to_string(index) + " of " + text() + " does not exist");
  }
  return extents_[static_cast<std::size_t>(index)];
}

void Shape::set(int index, std::int64_t extent) {
  if (index < 0 || index >= rank_) {
    throw Error("shape", "dimension " + std::to_string(index) + " of " + text() + " does not exist");
  }
  if (extent < 0) {
    throw Error("shape", "extent " + std::to_string(extent) + " of dimension " + std::to_string(index) +
                             " is negative");
  }
  extents_[static_cast<std::size_t>(index)] = extent;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : *this) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw Error("shape", text() + " has more elements than 63 bits count");
    }
  }
  return product;
}

std::array<std::int64_t, Shape::max_rank> Shape::strides() const {
  std::array<std::int64_t, max_rank> strides{};
  std::int64_t stride = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= extents_[static_cast<std::size_t>(i)];
  }
  return strides;
}

std::string Shape::text() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(extents_[static_cast<std::size_t>(i)]);
  }
  return text + "]";
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string TensorInfo::text() const {
  return std::string(name_of(dtype)) + shape.text();
}

}  // namespace purine
