#include <cmath>
#include <cstdint>
#include <limits>

#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/loops_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After the target is chosen: clang-format would sort it before.
// clang-format off
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Highway's functions hold within ranges; what lies outside is put right here.
struct Exp {
  static HWY_INLINE Vector of(Tag d, Vector x) {
    // Infinite from 88.73 on; beyond 104 Highway's would be wrong.
    const Vector y = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0F)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

struct Log {
  static HWY_INLINE Vector of(Tag d, Vector x) {
    const Vector zero = hn::Zero(d);
    const Vector infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const Vector nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    Vector y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
    y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
    return hn::IfThenElse(hn::Ge(x, zero), y, nan);
  }
};

struct Sigmoid {
  static HWY_INLINE Vector of(Tag d, Vector x) {
    const Vector one = hn::Set(d, 1.0F);
    return hn::Div(one, hn::Add(one, Exp::of(d, hn::Neg(x))));
  }
};

struct Tanh {
  static HWY_INLINE Vector of(Tag d, Vector x) {
    // Already at 10 the nearest float is 1.
    const Vector limit = hn::Set(d, 18.0F);
    const Vector y = hn::Tanh(d, hn::Min(hn::Max(x, hn::Neg(limit)), limit));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

/// The remainder goes through a vector too: an element's value must not depend on its place in the array.
template <typename Function>
void apply(const float* x, float* y, std::int64_t n) {
  const Tag d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + width <= n; i += width) hn::StoreU(Function::of(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  for (std::int64_t j = i; j < n; ++j) rest[j - i] = x[j];
  hn::Store(Function::of(d, hn::Load(d, rest)), d, rest);
  for (std::int64_t j = i; j < n; ++j) y[j] = rest[j - i];
}

const MathLoops<float>* math_f32() {
  static constexpr MathLoops<float> loops = {&apply<Exp>, &apply<Log>, &apply<Sigmoid>, &apply<Tanh>};
  return &loops;
}

}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {
namespace {

void exp_f64(const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

void log_f64(const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::log(x[i]);
}

void sigmoid_f64(const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = 1 / (1 + std::exp(-x[i]));
}

void tanh_f64(const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

}  // namespace

HWY_EXPORT(math_f32);

template <>
const MathLoops<float>& math_loops<float>() {
  return *HWY_DYNAMIC_DISPATCH(math_f32)();
}
template <>
const MathLoops<double>& math_loops<double>() {
  static constexpr MathLoops<double> loops = {&exp_f64, &log_f64, &sigmoid_f64, &tanh_f64};
  return loops;
}

}  // namespace purine::cpu
#endif
