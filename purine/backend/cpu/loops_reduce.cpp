#include <cstdint>
#include <limits>

#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/loops_reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {

constexpr int lanes = 16;

/// Adds term(i) for all i: sixteen running sums, then a tree over them, then what is left over.
template <typename Term>
HWY_INLINE double sum_terms(std::int64_t n, const Term& term) {
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  }
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  double total = sums[0];
  for (; i < n; ++i) total += term(i);
  return total;
}

template <typename T>
struct Element {
  const T* x;
  HWY_INLINE double operator()(std::int64_t i) const { return static_cast<double>(x[i]); }
};
template <typename T>
struct Product {
  const T* a;
  const T* b;
  HWY_INLINE double operator()(std::int64_t i) const {
    return static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
};
template <typename T>
struct SquaredDifference {
  const T* a;
  const T* b;
  HWY_INLINE double operator()(std::int64_t i) const {
    const auto difference = static_cast<double>(a[i] - b[i]);
    return difference * difference;
  }
};

template <typename T>
double sum(const T* x, std::int64_t n) {
  return sum_terms(n, Element<T>{x});
}

template <typename T>
double dot(const T* a, const T* b, std::int64_t n) {
  return sum_terms(n, Product<T>{a, b});
}

template <typename T>
double sum_of_squares(const T* x, std::int64_t n) {
  return sum_terms(n, Product<T>{x, x});
}

template <typename T>
double squared_distance(const T* a, const T* b, std::int64_t n) {
  return sum_terms(n, SquaredDifference<T>{a, b});
}

template <typename T>
T largest(const T* x, std::int64_t n) {
  T found[lanes];
  for (T& value : found) value = -std::numeric_limits<T>::infinity();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      found[lane] = x[i + lane] > found[lane] ? x[i + lane] : found[lane];
    }
  }
  for (; i < n; ++i) found[0] = x[i] > found[0] ? x[i] : found[0];
  for (int lane = 1; lane < lanes; ++lane) found[0] = found[lane] > found[0] ? found[lane] : found[0];
  return found[0];
}

template <typename T>
void accumulate(const T* x, double* total, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(x[i]);
}

template <typename T>
void accumulate_products(const T* a, const T* b, double* total, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
}

template <typename T>
const ReduceLoops<T>* table() {
  static constexpr ReduceLoops<T> loops = {
      &sum<T>,        &sum_of_squares<T>,     &dot<T>, &squared_distance<T>, &largest<T>,
      &accumulate<T>, &accumulate_products<T>};
  return &loops;
}

const ReduceLoops<float>* reduce_f32() {
  return table<float>();
}
const ReduceLoops<double>* reduce_f64() {
  return table<double>();
}

}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(reduce_f32);
HWY_EXPORT(reduce_f64);

template <>
const ReduceLoops<float>& reduce_loops<float>() {
  return *HWY_DYNAMIC_DISPATCH(reduce_f32)();
}
template <>
const ReduceLoops<double>& reduce_loops<double>() {
  return *HWY_DYNAMIC_DISPATCH(reduce_f64)();
}

}  // namespace purine::cpu
#endif
