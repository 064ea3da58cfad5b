#include "purine/core/dtype.h"

namespace purine {

std::size_t size_of(DType dtype) {
  return with_dtype(dtype, [](auto zero) { return sizeof(zero); });
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

}  // namespace purine
