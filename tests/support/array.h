// Tensors on the host for tests: elements in logical row-major order, surrounded by guard bytes while a
// kernel runs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/shape.h"
#include "purine/graph/contract.h"

namespace purine::test {

/// A tensor's value: info and elements, row-major by its logical shape whatever the layout of a kernel.
class Array {
 public:
  Array() = default;
  /// All zeros.
  explicit Array(TensorInfo info) : info_(info), bytes_(info.bytes()) {}
  /// From values, converted to the dtype; as many as the info has elements.
  Array(TensorInfo info, std::span<const double> values) : Array(info) {
    PURINE_CHECK_EQUAL(static_cast<std::int64_t>(values.size()), elements());
    for (std::int64_t i = 0; i < elements(); ++i) set(i, values[static_cast<std::size_t>(i)]);
  }
  Array(TensorInfo info, std::initializer_list<double> values)
      : Array(info, std::span<const double>(values.begin(), values.size())) {}
  static Array scalar(double value, DType dtype = DType::f32) { return Array({{}, dtype}, {value}); }

  const TensorInfo& info() const { return info_; }
  const Shape& shape() const { return info_.shape; }
  DType dtype() const { return info_.dtype; }
  std::int64_t elements() const { return info_.shape.elements(); }
  std::byte* bytes() { return bytes_.data(); }
  const std::byte* bytes() const { return bytes_.data(); }

  double at(std::int64_t index) const {
    return with_dtype(info_.dtype, [&](auto zero) {
      decltype(zero) value;
      std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(index) * sizeof(value), sizeof(value));
      return static_cast<double>(value);
    });
  }
  void set(std::int64_t index, double number) {
    with_dtype(info_.dtype, [&](auto zero) {
      const auto value = static_cast<decltype(zero)>(number);
      std::memcpy(bytes_.data() + static_cast<std::size_t>(index) * sizeof(value), &value, sizeof(value));
    });
  }
  std::vector<double> values() const {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(elements()));
    for (std::int64_t i = 0; i < elements(); ++i) values.push_back(at(i));
    return values;
  }
  /// The same numbers as another dtype.
  Array as(DType dtype) const { return Array({info_.shape, dtype}, values()); }
  /// Elements [begin, end) of a dimension.
  Array slice(int dimension, std::int64_t begin, std::int64_t end) const {
    Shape shape = info_.shape;
    shape.set(dimension, end - begin);
    Array part({shape, info_.dtype});
    const std::size_t inner = inner_bytes(dimension);
    const std::size_t outer_step = inner * static_cast<std::size_t>(info_.shape[dimension]);
    const std::size_t size = inner * static_cast<std::size_t>(end - begin);
    if (size == 0) return part;
    for (std::size_t outer = 0; outer * outer_step < bytes_.size(); ++outer) {
      std::memcpy(part.bytes_.data() + outer * size,
                  bytes_.data() + outer * outer_step + inner * static_cast<std::size_t>(begin), size);
    }
    return part;
  }
  /// Puts arrays together along a dimension.
  static Array concatenate(std::span<const Array> parts, int dimension) {
    TensorInfo info = parts[0].info();
    std::int64_t extent = 0;
    for (const Array& part : parts) extent += part.shape()[dimension];
    info.shape.set(dimension, extent);
    Array whole(info);
    const std::size_t inner = whole.inner_bytes(dimension);
    const std::size_t outer_step = inner * static_cast<std::size_t>(extent);
    std::size_t offset = 0;
    for (const Array& part : parts) {
      const std::size_t size = inner * static_cast<std::size_t>(part.shape()[dimension]);
      for (std::size_t outer = 0; size > 0 && outer * outer_step < whole.bytes_.size(); ++outer) {
        std::memcpy(whole.bytes_.data() + outer * outer_step + offset, part.bytes_.data() + outer * size,
                    size);
      }
      offset += size;
    }
    return whole;
  }
  /// Equal in info and in every bit.
  bool operator==(const Array& other) const { return info_ == other.info_ && bytes_ == other.bytes_; }

 private:
  std::size_t inner_bytes(int dimension) const {
    std::size_t bytes = size_of(info_.dtype);
    for (int i = dimension + 1; i < info_.shape.rank(); ++i) {
      bytes *= static_cast<std::size_t>(info_.shape[i]);
    }
    return bytes;
  }

  TensorInfo info_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(sizeof(float));
};

/// Copies between the logical order and a layout; `to_layout` says in which direction.
inline void convert_layout(const Shape& shape, std::size_t element_size, Layout layout, const std::byte* from,
                           std::byte* to, bool to_layout) {
  if (shape.elements() == 0) return;  // empty arrays have no address that memcpy may be given
  if (layout == Layout::plain || shape.rank() != 4) {
    std::memcpy(to, from, static_cast<std::size_t>(shape.elements()) * element_size);
    return;
  }
  const std::int64_t channels = shape[1];
  const std::int64_t pixels = shape[2] * shape[3];
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const auto logical = static_cast<std::size_t>((n * channels + c) * pixels + p) * element_size;
        const auto physical = static_cast<std::size_t>((n * pixels + p) * channels + c) * element_size;
        std::memcpy(to + (to_layout ? physical : logical), from + (to_layout ? logical : physical),
                    element_size);
      }
    }
  }
}

/// Memory aligned to 64 bytes as the kernels get it, filled with a pattern that is NaN in floating types (an
/// element that a kernel forgets to write shows), between guards that show writes out of bounds.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t size)
      : size_(size), memory_(static_cast<std::byte*>(::operator new (total(), std::align_val_t{64}))) {
    std::memset(memory_.get(), guard_value, total());
    std::memset(data(), 0xff, size_);
  }
  std::byte* data() { return memory_.get() + guard_size; }
  std::size_t size() const { return size_; }
  bool intact() const {
    for (std::size_t i = 0; i < guard_size; ++i) {
      if (memory_.get()[i] != std::byte{guard_value}) return false;
    }
    for (std::size_t i = guard_size + size_; i < total(); ++i) {
      if (memory_.get()[i] != std::byte{guard_value}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard_size = 256;
  static constexpr unsigned char guard_value = 0xa5;
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::size_t total() const { return guard_size + (size_ + 63) / 64 * 64 + guard_size; }

  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace purine::test
