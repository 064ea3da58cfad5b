#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/loops_arithmetic.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {

struct Plus {
  template <typename T>
  HWY_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Minus {
  template <typename T>
  HWY_INLINE T operator()(T a, T b) const {
    return a - b;
  }
};
struct Times {
  template <typename T>
  HWY_INLINE T operator()(T a, T b) const {
    return a * b;
  }
};
struct Over {
  template <typename T>
  HWY_INLINE T operator()(T a, T b) const {
    return a / b;
  }
};

template <typename T, typename Function>
void vectors(const T* a, const T* b, T* y, std::int64_t n) {
  const Function function;
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = function(a[i], b[i]);
}

template <typename T, typename Function>
void vector_scalar(const T* a, T b, T* y, std::int64_t n) {
  const Function function;
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = function(a[i], b);
}

template <typename T, typename Function>
void scalar_vector(T a, const T* b, T* y, std::int64_t n) {
  const Function function;
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = function(a, b[i]);
}

template <typename T>
void relu(const T* x, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < T{0} ? T{0} : x[i];
}

template <typename T>
void leaky_relu_gradient(const T* gradient, const T* output, T slope, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T below = slope * gradient[i];
    y[i] = output[i] > T{0} ? gradient[i] : below;
  }
}

template <typename T>
void leaky_relu(const T* x, T slope, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T below = slope * x[i];
    y[i] = x[i] > T{0} ? x[i] : below;
  }
}

template <typename T>
void square(const T* x, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

template <typename T>
void square_root(const T* x, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::sqrt(x[i]);
}

template <typename T>
void clip(const T* x, T low, T high, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T raised = x[i] < low ? low : x[i];
    y[i] = raised > high ? high : raised;
  }
}

template <typename T>
void clip_gradient(const T* gradient, const T* x, T low, T high, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T raised = x[i] >= low ? gradient[i] : T{0};
    y[i] = x[i] <= high ? raised : T{0};
  }
}

template <typename T>
void scaled_difference(const T* a, const T* b, T factor, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = factor * (a[i] - b[i]);
}

template <typename T>
void masked(const T* x, const std::uint8_t* mask, T factor, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T kept = x[i] * factor;
    y[i] = mask[i] != 0 ? kept : T{0};
  }
}

template <typename T>
void maximum(const T* a, const T* b, T* y, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = b[i] > a[i] ? b[i] : a[i];
}

template <typename T>
bool finite(const T* x, std::int64_t n) {
  // Infinite and NaN are what has all bits of the exponent set.
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T infinity = std::numeric_limits<T>::infinity();
  Bits exponent = 0;
  std::memcpy(&exponent, &infinity, sizeof(T));
  Bits bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, x + i, sizeof(T));
    bad |= (bits & exponent) == exponent ? Bits{1} : Bits{0};
  }
  return bad == 0;
}

template <typename T, typename Function>
constexpr BinaryLoops<T> binary_table() {
  return {&vectors<T, Function>, &vector_scalar<T, Function>, &scalar_vector<T, Function>};
}

template <typename T>
const ArithmeticLoops<T>* table() {
  static constexpr ArithmeticLoops<T> loops = {
      binary_table<T, Plus>(),
      binary_table<T, Minus>(),
      binary_table<T, Times>(),
      binary_table<T, Over>(),
      &relu<T>,
      &leaky_relu_gradient<T>,
      &leaky_relu<T>,
      &square<T>,
      &square_root<T>,
      &clip<T>,
      &clip_gradient<T>,
      &scaled_difference<T>,
      &masked<T>,
      &maximum<T>,
      &finite<T>,
  };
  return &loops;
}

const ArithmeticLoops<float>* arithmetic_f32() {
  return table<float>();
}
const ArithmeticLoops<double>* arithmetic_f64() {
  return table<double>();
}

}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(arithmetic_f32);
HWY_EXPORT(arithmetic_f64);

template <>
const ArithmeticLoops<float>& arithmetic_loops<float>() {
  return *HWY_DYNAMIC_DISPATCH(arithmetic_f32)();
}
template <>
const ArithmeticLoops<double>& arithmetic_loops<double>() {
  return *HWY_DYNAMIC_DISPATCH(arithmetic_f64)();
}

}  // namespace purine::cpu
#endif
