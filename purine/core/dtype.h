// Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace purine {

enum class DType : std::uint8_t { f32, f64, i32, i64, u8 };

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// `f32`, `f64`, `i32`, `i64`, `u8`.
std::string_view name_of(DType dtype);
/// True for f32 and f64, the types that gradients flow through.
bool is_floating(DType dtype);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

/// Calls `function(T{})` with T the C++ type of a floating dtype; the caller has checked that it is one.
template <typename Function>
decltype(auto) with_floating(DType dtype, Function&& function) {
  if (dtype == DType::f64) return function(double{});
  return function(float{});
}

/// Calls `function(T{})` with T the C++ type of the dtype.
template <typename Function>
decltype(auto) with_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f64:
      return function(double{});
    case DType::i32:
      return function(std::int32_t{});
    case DType::i64:
      return function(std::int64_t{});
    case DType::u8:
      return function(std::uint8_t{});
    case DType::f32:
      break;
  }
  return function(float{});
}

}  // namespace purine
