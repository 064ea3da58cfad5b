// Softmax of one line of neighbouring elements: what the softmax and the losses share.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// The largest element, and the sum over all of exp(element - largest).
struct ExponentialSum {
  double largest = 0;
  double total = 0;
};

/// Of float or double.
template <typename T>
ExponentialSum exponential_sum(const T* x, std::int64_t extent);

/// exp(x - largest) / total; y may be x.
template <typename T>
void softmax_row(const T* x, T* y, std::int64_t extent);

/// x - largest - log(total); y may be x.
template <typename T>
void log_softmax_row(const T* x, T* y, std::int64_t extent);

}  // namespace purine::cpu
