// Loops over arrays that the CPU's kernels are made of, compiled for several instruction sets.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// A table holds one function a loop; the accessors below return the one for the best instruction set that
/// this machine has, so that one library runs anywhere and fast where it can (Google Highway chooses). T is
/// float or double. An output may be one of the inputs, but must not overlap one otherwise. Elements are
/// computed independently of their place in the array: a part of an array gives the same bits as the whole.
template <typename T>
struct BinaryLoops {
  void (*vectors)(const T* a, const T* b, T* y, std::int64_t n);
  void (*vector_scalar)(const T* a, T b, T* y, std::int64_t n);
  void (*scalar_vector)(T a, const T* b, T* y, std::int64_t n);
};

/// Arithmetic: without fused multiply-add, so that the results do not depend on the instruction set.
template <typename T>
struct ArithmeticLoops {
  BinaryLoops<T> add;
  BinaryLoops<T> subtract;
  BinaryLoops<T> multiply;
  BinaryLoops<T> divide;
  /// max(x, 0); NaN stays.
  void (*relu)(const T* x, T* y, std::int64_t n);
  /// gradient where output > 0, else slope * gradient.
  void (*leaky_relu_gradient)(const T* gradient, const T* output, T slope, T* y, std::int64_t n);
  /// x where x > 0, else slope * x.
  void (*leaky_relu)(const T* x, T slope, T* y, std::int64_t n);
  void (*square)(const T* x, T* y, std::int64_t n);
  void (*sqrt)(const T* x, T* y, std::int64_t n);
  /// x moved into [low, high]; NaN stays.
  void (*clip)(const T* x, T low, T high, T* y, std::int64_t n);
  /// gradient where low <= x <= high, else 0.
  void (*clip_gradient)(const T* gradient, const T* x, T low, T high, T* y, std::int64_t n);
  /// factor * (a - b).
  void (*scaled_difference)(const T* a, const T* b, T factor, T* y, std::int64_t n);
  /// factor * x where mask is 1, 0 where it is 0.
  void (*masked)(const T* x, const std::uint8_t* mask, T factor, T* y, std::int64_t n);
  /// The larger of a and b, element by element; a where one is NaN.
  void (*maximum)(const T* a, const T* b, T* y, std::int64_t n);
  /// True if no element is NaN or infinite.
  bool (*finite)(const T* x, std::int64_t n);
};

/// The optimisers' steps; see purine/ops/update.h for the formulas.
template <typename T>
struct UpdateLoops {
  struct Momentum {
    T learning_rate;
    T momentum;
    T weight_decay;
  };
  struct Adam {
    T step;          ///< learning_rate / (1 - beta1^t)
    T root;          ///< sqrt(1 - beta2^t)
    T shrink;        ///< what the weight is multiplied by first: 1, or less with decoupled decay
    T weight_decay;  ///< what is added to the gradient, of the weight
    T beta1;
    T beta2;
    T rest1;  ///< 1 - beta1, not rounded before
    T rest2;  ///< 1 - beta2
    T epsilon;
  };
  struct Tensors {
    const T* weight;
    const T* first;
    const T* second;
    const T* gradient;
    T* new_weight;
    T* new_first;
    T* new_second;
  };
  void (*sgd)(const T* weight, const T* gradient, T rate, T weight_decay, T* new_weight, std::int64_t n);
  void (*momentum)(const Tensors& tensors, const Momentum& options, std::int64_t n);
  void (*nesterov)(const Tensors& tensors, const Momentum& options, std::int64_t n);
  void (*adam)(const Tensors& tensors, const Adam& options, std::int64_t n);
};

/// Sums in f64. Sixteen running sums are added up in a fixed tree, whatever the instruction set.
template <typename T>
struct ReduceLoops {
  double (*sum)(const T* x, std::int64_t n);
  double (*sum_of_squares)(const T* x, std::int64_t n);
  /// The sum of a * b.
  double (*dot)(const T* a, const T* b, std::int64_t n);
  /// The sum of (a - b)^2, the difference taken in T.
  double (*squared_distance)(const T* a, const T* b, std::int64_t n);
  /// The largest element; minus infinity for none. NaN is passed over.
  T (*largest)(const T* x, std::int64_t n);
  /// total[i] += x[i].
  void (*accumulate)(const T* x, double* total, std::int64_t n);
  /// total[i] += a[i] * b[i].
  void (*accumulate_products)(const T* a, const T* b, double* total, std::int64_t n);
};

/// Functions to within 4 units in the last place in f32 (Highway's polynomials); f64 are the standard
/// library's. NaN gives NaN.
template <typename T>
struct MathLoops {
  void (*exp)(const T* x, T* y, std::int64_t n);
  void (*log)(const T* x, T* y, std::int64_t n);
  void (*sigmoid)(const T* x, T* y, std::int64_t n);
  void (*tanh)(const T* x, T* y, std::int64_t n);
};

template <typename T>
const ArithmeticLoops<T>& arithmetic_loops();
template <typename T>
const UpdateLoops<T>& update_loops();
template <typename T>
const ReduceLoops<T>& reduce_loops();
template <typename T>
const MathLoops<T>& math_loops();

}  // namespace purine::cpu
