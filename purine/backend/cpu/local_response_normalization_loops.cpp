#include "purine/backend/cpu/local_response_normalization_loops.h"

#include <algorithm>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/local_response_normalization_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, since it is made anew for every target.
#include <hwy/contrib/math/math-inl.h>

#ifndef PURINE_RESPONSE_COLUMN
#define PURINE_RESPONSE_COLUMN
namespace purine::cpu {

/// Planes are worked on in strips of this many pixels.
constexpr std::int64_t strip = 16;
/// The elements of the longest vector: columns are that much longer than they need, so that no vector ends
/// early.
constexpr std::int64_t slack = 16;

/// All channels of a few pixels, one after the other in scratch memory: a single pixel where the channels are
/// last, else a strip. A channel's neighbour is `step` elements away; before the first channel and after the
/// last there are zeros, as many as a neighbourhood reaches.
struct ColumnSize {
  explicit ColumnSize(const ResponseGeometry& geometry)
      : step(geometry.channels_last ? 1 : strip),
        elements(geometry.channels * step),
        halo(geometry.options.size * step),
        whole((elements + 2 * halo + slack + slack - 1) / slack * slack) {}
  std::int64_t step;
  std::int64_t elements;
  std::int64_t halo;
  std::int64_t whole;
};

}  // namespace purine::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// value^-beta, given 1 / value; the power in use needs no logarithm.
template <class D>
HWY_INLINE hn::Vec<D> inverse_power(D d, hn::Vec<D> inverse, double beta) {
  if (beta == 0.75) {
    const auto root = hn::Sqrt(inverse);
    return hn::Mul(root, hn::Sqrt(root));
  }
  return hn::Exp(d, hn::Mul(hn::Log(d, inverse), hn::Set(d, static_cast<hn::TFromD<D>>(beta))));
}

/// The sum of a column's elements at the channels from `before` below to `after` above that of `at`.
template <class D>
HWY_INLINE hn::Vec<D> sum_of_neighbours(D d, const hn::TFromD<D>* at, std::int64_t before, std::int64_t after,
                                        std::int64_t step) {
  auto sum = hn::Zero(d);
  for (std::int64_t neighbour = -before; neighbour <= after; ++neighbour) {
    sum = hn::Add(sum, hn::LoadU(d, at + neighbour * step));
  }
  return sum;
}

/// Works on one operator's samples column by column.
template <typename T>
class Responses {
 public:
  Responses(const ResponseGeometry& geometry, std::byte* scratch)
      : geometry_(geometry), size_(geometry), scratch_(reinterpret_cast<T*>(scratch)) {}

  void forward(const T* x, T* y, std::int64_t begin, std::int64_t end) const {
    T* values = column(0);
    T* squares = column(1);
    for_columns(begin, end, [&](std::int64_t at, std::int64_t pixels) HWY_ATTR {
      load(x + at, pixels, values);
      square(values, squares);
      const hn::ScalableTag<T> d;
      for (std::int64_t i = 0; i < size_.elements; i += lanes()) {
        const auto power = inverse_power(d, inverse_scale(d, squares + i), geometry_.options.beta);
        hn::StoreU(hn::Mul(hn::LoadU(d, values + i), power), d, values + i);
      }
      store(values, pixels, y + at);
    });
  }

  // With s the scale and p = s^-beta: dx[c] = dy[c] p[c] - 2 alpha beta / size x[c] sum of dy[e] x[e] p[e] /
  // s[e] over the channels e in whose neighbourhood c lies.
  void backward(const T* dy, const T* x, T* dx, std::int64_t begin, std::int64_t end) const {
    T* values = column(0);
    T* squares = column(1);
    T* gradients = column(2);
    T* terms = column(3);
    const ops::LocalResponseNormalizationOptions& options = geometry_.options;
    const auto factor = static_cast<T>(2 * options.alpha * options.beta / static_cast<double>(options.size));
    for_columns(begin, end, [&](std::int64_t at, std::int64_t pixels) HWY_ATTR {
      load(x + at, pixels, values);
      load(dy + at, pixels, gradients);
      square(values, squares);
      const hn::ScalableTag<T> d;
      for (std::int64_t i = 0; i < size_.elements; i += lanes()) {
        const auto inverse = inverse_scale(d, squares + i);
        const auto direct = hn::Mul(hn::LoadU(d, gradients + i), inverse_power(d, inverse, options.beta));
        hn::StoreU(direct, d, gradients + i);
        hn::StoreU(hn::Mul(hn::Mul(direct, hn::LoadU(d, values + i)), inverse), d, terms + i);
      }
      std::fill_n(terms + size_.elements, lanes(), T{0});
      for (std::int64_t i = 0; i < size_.elements; i += lanes()) {
        const auto sum =
            sum_of_neighbours(d, terms + i, (options.size - 1) / 2, options.size / 2, size_.step);
        const auto indirect = hn::Mul(hn::Mul(hn::Set(d, factor), hn::LoadU(d, values + i)), sum);
        hn::StoreU(hn::Sub(hn::LoadU(d, gradients + i), indirect), d, gradients + i);
      }
      store(gradients, pixels, dx + at);
    });
  }

 private:
  static std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())); }

  /// A column of the scratch memory, all zeros, from its first channel on.
  T* column(std::int64_t index) const {
    T* first = scratch_ + index * size_.whole;
    std::fill_n(first, size_.whole, T{0});
    return first + size_.halo;
  }

  /// Calls function(offset of the first element, pixels) for every column.
  template <typename Function>
  void for_columns(std::int64_t begin, std::int64_t end, Function function) const {
    const std::int64_t sample_elements = geometry_.channels * geometry_.pixels;
    for (std::int64_t sample = begin; sample < end; ++sample) {
      for (std::int64_t pixel = 0; pixel < geometry_.pixels; pixel += size_.step) {
        const std::int64_t offset = geometry_.channels_last ? pixel * geometry_.channels : pixel;
        function(sample * sample_elements + offset, std::min(size_.step, geometry_.pixels - pixel));
      }
    }
  }

  void load(const T* from, std::int64_t pixels, T* values) const {
    if (geometry_.channels_last) {
      std::copy_n(from, size_.elements, values);
      return;
    }
    for (std::int64_t channel = 0; channel < geometry_.channels; ++channel) {
      std::copy_n(from + channel * geometry_.pixels, pixels, values + channel * size_.step);
    }
  }

  void store(const T* values, std::int64_t pixels, T* to) const {
    if (geometry_.channels_last) {
      std::copy_n(values, size_.elements, to);
      return;
    }
    for (std::int64_t channel = 0; channel < geometry_.channels; ++channel) {
      std::copy_n(values + channel * size_.step, pixels, to + channel * geometry_.pixels);
    }
  }

  void square(const T* values, T* squares) const {
    for (std::int64_t i = 0; i < size_.elements; ++i) squares[i] = values[i] * values[i];
  }

  /// 1 / (k + alpha / size * the neighbourhoods' squares).
  template <class D>
  HWY_INLINE hn::Vec<D> inverse_scale(D d, const T* squares) const {
    const ops::LocalResponseNormalizationOptions& options = geometry_.options;
    const auto sum = sum_of_neighbours(d, squares, options.size / 2, (options.size - 1) / 2, size_.step);
    const auto factor = hn::Set(d, static_cast<T>(options.alpha / static_cast<double>(options.size)));
    return hn::Div(hn::Set(d, T{1}), hn::MulAdd(sum, factor, hn::Set(d, static_cast<T>(options.k))));
  }

  ResponseGeometry geometry_;
  ColumnSize size_;
  T* scratch_;
};

void forward_samples(const ResponseGeometry& geometry, const std::byte* x, std::byte* y, std::byte* scratch,
                     std::int64_t begin, std::int64_t end) {
  with_floating(geometry.dtype, [&]<typename T>(T) {
    Responses<T>(geometry, scratch)
        .forward(reinterpret_cast<const T*>(x), reinterpret_cast<T*>(y), begin, end);
  });
}

void backward_samples(const ResponseGeometry& geometry, const std::byte* dy, const std::byte* x,
                      std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end) {
  with_floating(geometry.dtype, [&]<typename T>(T) {
    Responses<T>(geometry, scratch)
        .backward(reinterpret_cast<const T*>(dy), reinterpret_cast<const T*>(x), reinterpret_cast<T*>(dx),
                  begin, end);
  });
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(forward_samples);
HWY_EXPORT(backward_samples);

std::size_t ResponseGeometry::scratch_bytes() const {
  constexpr std::size_t columns = 4;
  return columns * static_cast<std::size_t>(ColumnSize(*this).whole) * size_of(dtype);
}

void normalize_responses(const ResponseGeometry& geometry, const std::byte* x, std::byte* y,
                         std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(forward_samples)(geometry, x, y, scratch, begin, end);
}

void normalize_responses_gradient(const ResponseGeometry& geometry, const std::byte* dy, const std::byte* x,
                                  std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(backward_samples)(geometry, dy, x, dx, scratch, begin, end);
}

}  // namespace purine::cpu
#endif
