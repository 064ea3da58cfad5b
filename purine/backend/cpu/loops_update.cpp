#include <cmath>
#include <cstdint>

#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/loops_update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {

template <typename T>
void sgd(const T* weight, const T* gradient, T rate, T weight_decay, T* new_weight, std::int64_t n) {
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T w = weight[i];
    new_weight[i] = w - rate * (gradient[i] + weight_decay * w);
  }
}

template <typename T, bool nesterov>
void momentum(const typename UpdateLoops<T>::Tensors& tensors,
              const typename UpdateLoops<T>::Momentum& options, std::int64_t n) {
  const T* weight = tensors.weight;
  const T* velocity = tensors.first;
  const T* gradient = tensors.gradient;
  T* new_weight = tensors.new_weight;
  T* new_velocity = tensors.new_first;
  const auto [rate, factor, decay] = options;
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T w = weight[i];
    const T d = gradient[i] + decay * w;
    const T v = factor * velocity[i] + d;
    new_velocity[i] = v;
    new_weight[i] = w - rate * (nesterov ? d + factor * v : v);
  }
}

template <typename T>
void adam(const typename UpdateLoops<T>::Tensors& tensors, const typename UpdateLoops<T>::Adam& options,
          std::int64_t n) {
  const T* weight = tensors.weight;
  const T* first = tensors.first;
  const T* second = tensors.second;
  const T* gradient = tensors.gradient;
  T* new_weight = tensors.new_weight;
  T* new_first = tensors.new_first;
  T* new_second = tensors.new_second;
  const auto [step, root, shrink, decay, beta1, beta2, rest1, rest2, epsilon] = options;
  PURINE_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T w = weight[i] * shrink;
    const T g = gradient[i] + decay * weight[i];
    const T m = beta1 * first[i] + rest1 * g;
    const T v = beta2 * second[i] + rest2 * (g * g);
    new_first[i] = m;
    new_second[i] = v;
    new_weight[i] = w - step * (m / (std::sqrt(v) / root + epsilon));
  }
}

template <typename T>
const UpdateLoops<T>* table() {
  static constexpr UpdateLoops<T> loops = {&sgd<T>, &momentum<T, false>, &momentum<T, true>, &adam<T>};
  return &loops;
}

const UpdateLoops<float>* update_f32() {
  return table<float>();
}
const UpdateLoops<double>* update_f64() {
  return table<double>();
}

}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(update_f32);
HWY_EXPORT(update_f64);

template <>
const UpdateLoops<float>& update_loops<float>() {
  return *HWY_DYNAMIC_DISPATCH(update_f32)();
}
template <>
const UpdateLoops<double>& update_loops<double>() {
  return *HWY_DYNAMIC_DISPATCH(update_f64)();
}

}  // namespace purine::cpu
#endif
