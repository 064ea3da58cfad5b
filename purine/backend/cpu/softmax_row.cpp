#include "purine/backend/cpu/softmax_row.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "purine/backend/cpu/loops.h"

namespace purine::cpu {
namespace {

constexpr std::int64_t chunk = 256;

}  // namespace

template <typename T>
ExponentialSum exponential_sum(const T* x, std::int64_t extent) {
  const T largest = reduce_loops<T>().largest(x, extent);
  double total = 0;
  std::array<T, chunk> powers;
  for (std::int64_t k = 0; k < extent; k += chunk) {
    const std::int64_t count = std::min(chunk, extent - k);
    arithmetic_loops<T>().subtract.vector_scalar(x + k, largest, powers.data(), count);
    math_loops<T>().exp(powers.data(), powers.data(), count);
    total += reduce_loops<T>().sum(powers.data(), count);
  }
  return {static_cast<double>(largest), total};
}

template <typename T>
void softmax_row(const T* x, T* y, std::int64_t extent) {
  arithmetic_loops<T>().subtract.vector_scalar(x, reduce_loops<T>().largest(x, extent), y, extent);
  math_loops<T>().exp(y, y, extent);
  const double total = reduce_loops<T>().sum(y, extent);
  arithmetic_loops<T>().multiply.vector_scalar(y, static_cast<T>(1 / total), y, extent);
}

template <typename T>
void log_softmax_row(const T* x, T* y, std::int64_t extent) {
  const ExponentialSum sum = exponential_sum(x, extent);
  const auto& subtract = arithmetic_loops<T>().subtract;
  subtract.vector_scalar(x, static_cast<T>(sum.largest), y, extent);
  subtract.vector_scalar(y, static_cast<T>(std::log(sum.total)), y, extent);
}

template ExponentialSum exponential_sum(const float* x, std::int64_t extent);
template ExponentialSum exponential_sum(const double* x, std::int64_t extent);
template void softmax_row(const float* x, float* y, std::int64_t extent);
template void softmax_row(const double* x, double* y, std::int64_t extent);
template void log_softmax_row(const float* x, float* y, std::int64_t extent);
template void log_softmax_row(const double* x, double* y, std::int64_t extent);

}  // namespace purine::cpu
