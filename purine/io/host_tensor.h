// A tensor's value in the memory of the host, with its name: what files hold and sessions give and take.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/shape.h"

namespace purine::io {

struct HostTensor {
  std::string name;  ///< the tensor's path: `lenet/conv1/weight`
  TensorInfo info;
  std::vector<std::byte> data;  ///< info.bytes() bytes, row-major, in the machine's byte order

  /// A tensor made of values, row-major; their number must be the shape's.
  template <typename T>
  static HostTensor of(std::string name, const Shape& shape, std::span<const T> values);

  /// The elements. T must be the type of the dtype: anything else throws Error naming the tensor.
  template <typename T>
  std::span<const T> values() const;

  bool operator==(const HostTensor& other) const = default;

 private:
  void check_read_as(DType dtype) const;
  static void check_elements(std::string_view name, const Shape& shape, std::size_t elements);
};

/// The tensor of a name, or null.
const HostTensor* find_tensor(std::span<const HostTensor> tensors, std::string_view name);

template <typename T>
HostTensor HostTensor::of(std::string name, const Shape& shape, std::span<const T> values) {
  check_elements(name, shape, values.size());
  HostTensor tensor{std::move(name), {shape, DTypeOf<T>::value}, std::vector<std::byte>(values.size_bytes())};
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), values.size_bytes());
  return tensor;
}

template <typename T>
std::span<const T> HostTensor::values() const {
  check_read_as(DTypeOf<T>::value);
  return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
}

}  // namespace purine::io
