#include "purine/ops/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

constexpr std::int64_t chunk = 256;

template <typename T>
void sigmoid_gradient(const T* gradient, const T* output, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = gradient[i] * output[i] * (T{1} - output[i]);
}

template <typename T>
void tanh_gradient(const T* gradient, const T* output, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = gradient[i] * (T{1} - output[i] * output[i]);
}

/// The normal distribution function.
template <typename T>
T normal_distribution(T x) {
  return T{0.5} * std::erfc(-x / std::numbers::sqrt2_v<T>);
}

template <typename T>
T normal_density(T x) {
  return std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T> * std::exp(T{-0.5} * x * x);
}

template <typename T>
void gelu(const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * normal_distribution(x[i]);
}

template <typename T>
void gelu_gradient(const T* gradient, const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = gradient[i] * (normal_distribution(x[i]) + x[i] * normal_density(x[i]));
  }
}

template <typename T>
constexpr T gelu_factor = std::numbers::sqrt2_v<T>* std::numbers::inv_sqrtpi_v<T>;  // sqrt(2 / pi)
template <typename T>
constexpr T gelu_cubic = static_cast<T>(0.044715);

/// Calls function(x, t, begin, count) for chunks, t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
template <typename T, typename Function>
void with_gelu_tanh(const T* x, std::int64_t n, const Function& function) {
  const auto tanh = math_loops<T>().tanh;
  std::array<T, chunk> t;
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    const std::int64_t count = std::min(chunk, n - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const T v = x[begin + i];
      t[static_cast<std::size_t>(i)] = gelu_factor<T> * (v + gelu_cubic<T> * v * v * v);
    }
    tanh(t.data(), t.data(), count);
    function(t.data(), begin, count);
  }
}

template <typename T>
void approximate_gelu(const T* x, T* y, std::int64_t n) {
  with_gelu_tanh(x, n, [=](const T* t, std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) y[begin + i] = T{0.5} * x[begin + i] * (T{1} + t[i]);
  });
}

template <typename T>
void approximate_gelu_gradient(const T* gradient, const T* x, T* y, std::int64_t n) {
  with_gelu_tanh(x, n, [=](const T* t, std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T v = x[begin + i];
      const T inner = gelu_factor<T> * (T{1} + T{3} * gelu_cubic<T> * v * v);
      const T slope = T{0.5} * (T{1} + t[i]) + T{0.5} * v * (T{1} - t[i] * t[i]) * inner;
      y[begin + i] = gradient[begin + i] * slope;
    }
  });
}

}  // namespace

void register_activation(KernelRegistry& registry) {
  add_floating(registry, "leaky_relu", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().leaky_relu;
    const auto slope = static_cast<T>(context.as<ops::LeakyRelu>().slope());
    return elementwise_kernel<T>(context.input(0).shape.elements(),
                                 [=](const T* x, T* y, std::int64_t n) { loop(x, slope, y, n); });
  });
  add_floating(registry, "leaky_relu_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const auto loop = arithmetic_loops<T>().leaky_relu_gradient;
    const auto slope = static_cast<T>(context.as<ops::LeakyReluGradient>().slope());
    return elementwise_kernel_of_two<T>(context.input(0).shape.elements(),
                                        [=](const T* gradient, const T* output, T* y, std::int64_t n) {
                                          loop(gradient, output, slope, y, n);
                                        });
  });
  add_floating(registry, "sigmoid", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), math_loops<T>().sigmoid);
  });
  add_floating(registry, "sigmoid_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel_of_two<T>(context.input(0).shape.elements(), &sigmoid_gradient<T>);
  });
  add_floating(registry, "tanh", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel<T>(context.input(0).shape.elements(), math_loops<T>().tanh);
  });
  add_floating(registry, "tanh_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    return elementwise_kernel_of_two<T>(context.input(0).shape.elements(), &tanh_gradient<T>);
  });
  add_floating(registry, "gelu", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const bool approximate = context.as<ops::Gelu>().approximate();
    return elementwise_kernel<T>(context.input(0).shape.elements(),
                                 approximate ? &approximate_gelu<T> : &gelu<T>);
  });
  add_floating(registry, "gelu_gradient", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const bool approximate = context.as<ops::GeluGradient>().approximate();
    return elementwise_kernel_of_two<T>(context.input(0).shape.elements(),
                                        approximate ? &approximate_gelu_gradient<T> : &gelu_gradient<T>);
  });
}

}  // namespace purine::cpu
