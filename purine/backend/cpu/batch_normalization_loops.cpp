#include "purine/backend/cpu/batch_normalization_loops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/batch_normalization_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls function(tag, index) for vectors that cover [begin, end): whole ones, then single elements.
template <typename T, typename Function>
HWY_INLINE void for_vectors(std::int64_t begin, std::int64_t end, Function function) {
  const hn::ScalableTag<T> full;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(full));
  std::int64_t at = begin;
  for (; at + lanes <= end; at += lanes) function(full, at);
  const hn::CappedTag<T, 1> single;
  for (; at < end; ++at) function(single, at);
}

/// Some channels of one tensor shape. Arrays of one element a channel count from the first of them.
template <typename T>
class Channels {
 public:
  Channels(const ChannelGeometry& geometry, std::byte* scratch, std::int64_t begin, std::int64_t end)
      : g_(geometry), begin_(begin), count_(end - begin), scratch_(scratch) {}

  void statistics(const T* x, T* mean, T* variance) const {
    T* origin = array<T>(0);
    double* first = array<double>(1);
    double* second = array<double>(2);
    for (std::int64_t c = 0; c < count_; ++c)
      origin[c] = x[(begin_ + c) * (g_.channels_last ? 1 : g_.pixels)];
    add_up(first, second, [&](auto d, std::int64_t at, auto channel) HWY_ATTR {
      const auto distance = hn::Sub(hn::LoadU(d, x + at), channel(origin));
      return std::pair(distance, distance);
    });
    const auto n = static_cast<double>(g_.elements_per_channel());
    for (std::int64_t c = 0; c < count_; ++c) {
      const double distance = first[c] / n;
      mean[begin_ + c] = static_cast<T>(static_cast<double>(origin[c]) + distance);
      variance[begin_ + c] = static_cast<T>(std::max(second[c] / n - distance * distance, 0.0));
    }
  }

  void normalize(const T* x, const T* scale, const T* shift, const T* mean, const T* variance,
                 const T* summand, T* y) const {
    const Line line = prepare_line(scale, shift, mean, variance);
    const auto rectified = [](auto d, auto value)
                               HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value); };
    const auto store_all = [&](auto value_at) HWY_ATTR {
      if (g_.relu) {
        for_elements([&](auto d, std::int64_t at, auto channel)
                         HWY_ATTR { hn::StoreU(rectified(d, value_at(d, at, channel)), d, y + at); });
      } else {
        for_elements([&](auto d, std::int64_t at, auto channel)
                         HWY_ATTR { hn::StoreU(value_at(d, at, channel), d, y + at); });
      }
    };
    const auto normalized = [&](auto d, std::int64_t at, auto channel)
                                HWY_ATTR { return line(hn::LoadU(d, x + at), channel); };
    if (summand == nullptr) {
      store_all(normalized);
    } else {
      store_all([&](auto d, std::int64_t at, auto channel)
                    HWY_ATTR { return hn::Add(normalized(d, at, channel), hn::LoadU(d, summand + at)); });
    }
  }

  void gradient(const T* dy, const T* x, const T* scale, const T* shift, const T* mean, const T* variance,
                bool through_statistics, T* dx, T* dscale, T* dshift) const {
    if (g_.relu) {
      const Line line = prepare_line(scale, shift, mean, variance);
      gradient_of(
          [&](auto d, std::int64_t at, auto channel) HWY_ATTR {
            const auto above = hn::Gt(line(hn::LoadU(d, x + at), channel), hn::Zero(d));
            return hn::IfThenElseZero(above, hn::LoadU(d, dy + at));
          },
          x, scale, mean, variance, through_statistics, dx, dscale, dshift);
    } else {
      gradient_of([&](auto d, std::int64_t at, auto) HWY_ATTR { return hn::LoadU(d, dy + at); }, x, scale,
                  mean, variance, through_statistics, dx, dscale, dshift);
    }
  }

 private:
  /// What maps an element of x to its normalised value: the same operations wherever it is asked for.
  struct Line {
    const T* center;
    const T* factor;
    const T* offset;
    template <typename V, typename Channel>
    HWY_INLINE V operator()(V x, Channel channel) const {
      return hn::MulAdd(hn::Sub(x, channel(center)), channel(factor), channel(offset));
    }
  };
  Line prepare_line(const T* scale, const T* shift, const T* mean, const T* variance) const {
    T* center = array<T>(0);
    T* factor = array<T>(1);
    T* offset = array<T>(2);
    for (std::int64_t c = 0; c < count_; ++c) {
      center[c] = mean[begin_ + c];
      factor[c] = scale[begin_ + c] / deviation(variance[begin_ + c]);
      offset[c] = shift[begin_ + c];
    }
    return {center, factor, offset};
  }

  /// With the gradients by the normalised values before they are rectified: load_gradient(tag, offset,
  /// channel).
  template <typename LoadGradient>
  void gradient_of(LoadGradient load_gradient, const T* x, const T* scale, const T* mean, const T* variance,
                   bool through_statistics, T* dx, T* dscale, T* dshift) const {
    T* center = array<T>(0);
    double* sums = array<double>(3);
    double* products = array<double>(4);
    T* direct = array<T>(5);
    T* indirect = array<T>(6);
    T* offset = array<T>(7);
    for (std::int64_t c = 0; c < count_; ++c) center[c] = mean[begin_ + c];
    add_up(sums, products, [&](auto d, std::int64_t at, auto channel) HWY_ATTR {
      const auto gradient = load_gradient(d, at, channel);
      return std::pair(gradient, hn::Sub(hn::LoadU(d, x + at), channel(center)));
    });
    const auto n = static_cast<double>(g_.elements_per_channel());
    for (std::int64_t c = 0; c < count_; ++c) {
      const double s = deviation(static_cast<double>(variance[begin_ + c]));
      const double factor = static_cast<double>(scale[begin_ + c]) / s;
      dscale[begin_ + c] = static_cast<T>(products[c] / s);
      dshift[begin_ + c] = static_cast<T>(sums[c]);
      direct[c] = static_cast<T>(factor);
      indirect[c] = static_cast<T>(-factor * products[c] / (n * s * s));
      offset[c] = static_cast<T>(-factor * sums[c] / n);
    }
    if (through_statistics) {
      for_elements([&](auto d, std::int64_t at, auto channel) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, x + at), channel(center));
        const auto through_mean = hn::MulAdd(load_gradient(d, at, channel), channel(direct), channel(offset));
        hn::StoreU(hn::MulAdd(distance, channel(indirect), through_mean), d, dx + at);
      });
    } else {
      for_elements([&](auto d, std::int64_t at, auto channel) HWY_ATTR {
        hn::StoreU(hn::Mul(load_gradient(d, at, channel), channel(direct)), d, dx + at);
      });
    }
  }

  /// Elements that are added up in T before the sums go into f64.
  static constexpr std::int64_t run = 256;

  template <typename U>
  U* array(std::int64_t index) const {
    return reinterpret_cast<U*>(scratch_ + static_cast<std::size_t>(index * count_) * sizeof(double));
  }

  template <typename U>
  U deviation(U variance) const {
    return std::sqrt(variance + static_cast<U>(g_.epsilon));
  }

  /// Calls function(tag, offset, channel) for vectors that cover all elements; channel(array) is the vector
  /// of their channels' elements of an array.
  template <typename Function>
  void for_elements(Function function) const {
    if (g_.channels_last) {
      for (std::int64_t pixel = 0; pixel < g_.samples * g_.pixels; ++pixel) {
        const std::int64_t first = pixel * g_.channels + begin_;
        for_vectors<T>(0, count_, [&](auto d, std::int64_t c) HWY_ATTR {
          function(d, first + c, [&](const T* array) HWY_ATTR { return hn::LoadU(d, array + c); });
        });
      }
      return;
    }
    for (std::int64_t sample = 0; sample < g_.samples; ++sample) {
      for (std::int64_t c = 0; c < count_; ++c) {
        const std::int64_t first = (sample * g_.channels + begin_ + c) * g_.pixels;
        for_vectors<T>(first, first + g_.pixels, [&](auto d, std::int64_t at) HWY_ATTR {
          function(d, at, [&](const T* array) HWY_ATTR { return hn::Set(d, array[c]); });
        });
      }
    }
  }

  /// Sums over each channel: term(tag, offset, channel) is a pair, whose first goes into `first` and whose
  /// product goes into `second`; `channel` as of for_elements.
  template <typename Term>
  void add_up(double* first, double* second, Term term) const {
    std::fill_n(first, count_, 0.0);
    std::fill_n(second, count_, 0.0);
    if (g_.channels_last) {
      add_up_channels_last(first, second, term);
    } else {
      add_up_planes(first, second, term);
    }
  }

  template <typename Term>
  void add_up_channels_last(double* first, double* second, Term& term) const {
    T* first_run = array<T>(8);
    T* second_run = array<T>(9);
    const std::int64_t pixels = g_.samples * g_.pixels;
    for (std::int64_t begin = 0; begin < pixels; begin += run) {
      std::fill_n(first_run, count_, T{0});
      std::fill_n(second_run, count_, T{0});
      for (std::int64_t pixel = begin; pixel < std::min(begin + run, pixels); ++pixel) {
        const std::int64_t from = pixel * g_.channels + begin_;
        for_vectors<T>(0, count_, [&](auto d, std::int64_t c) HWY_ATTR {
          const auto [one, other] =
              term(d, from + c, [&](const T* array) HWY_ATTR { return hn::LoadU(d, array + c); });
          hn::StoreU(hn::Add(hn::LoadU(d, first_run + c), one), d, first_run + c);
          hn::StoreU(hn::MulAdd(one, other, hn::LoadU(d, second_run + c)), d, second_run + c);
        });
      }
      for (std::int64_t c = 0; c < count_; ++c) {
        first[c] += static_cast<double>(first_run[c]);
        second[c] += static_cast<double>(second_run[c]);
      }
    }
  }

  template <typename Term>
  void add_up_planes(double* first, double* second, Term& term) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const hn::CappedTag<T, 1> single;
    for (std::int64_t sample = 0; sample < g_.samples; ++sample) {
      for (std::int64_t c = 0; c < count_; ++c) {
        const std::int64_t plane = (sample * g_.channels + begin_ + c) * g_.pixels;
        const std::int64_t end = plane + g_.pixels;
        const auto channel = [&](const T* array) HWY_ATTR { return hn::Set(d, array[c]); };
        std::int64_t at = plane;
        while (at + lanes <= end) {
          auto first_run = hn::Zero(d);
          auto second_run = hn::Zero(d);
          for (const std::int64_t stop = std::min(end, at + run * lanes); at + lanes <= stop; at += lanes) {
            const auto [one, other] = term(d, at, channel);
            first_run = hn::Add(first_run, one);
            second_run = hn::MulAdd(one, other, second_run);
          }
          first[c] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, first_run)));
          second[c] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, second_run)));
        }
        for (; at < end; ++at) {
          const auto [one, other] =
              term(single, at, [&](const T* array) HWY_ATTR { return hn::Set(single, array[c]); });
          first[c] += static_cast<double>(hn::GetLane(one));
          second[c] += static_cast<double>(hn::GetLane(hn::Mul(one, other)));
        }
      }
    }
  }

  ChannelGeometry g_;
  std::int64_t begin_;
  std::int64_t count_;
  std::byte* scratch_;
};

template <typename T>
const T* elements(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

template <typename T>
T* elements(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

void statistics(const ChannelGeometry& geometry, const std::byte* x, std::byte* mean, std::byte* variance,
                std::byte* scratch, std::int64_t begin, std::int64_t end) {
  with_floating(geometry.dtype, [&]<typename T>(T) {
    Channels<T>(geometry, scratch, begin, end)
        .statistics(elements<T>(x), elements<T>(mean), elements<T>(variance));
  });
}

void normalize(const ChannelGeometry& geometry, const std::byte* x, const std::byte* scale,
               const std::byte* shift, const std::byte* mean, const std::byte* variance,
               const std::byte* summand, std::byte* y, std::byte* scratch, std::int64_t begin,
               std::int64_t end) {
  with_floating(geometry.dtype, [&]<typename T>(T) {
    Channels<T>(geometry, scratch, begin, end)
        .normalize(elements<T>(x), elements<T>(scale), elements<T>(shift), elements<T>(mean),
                   elements<T>(variance), elements<T>(summand), elements<T>(y));
  });
}

void gradient(const ChannelGeometry& geometry, const std::byte* dy, const std::byte* x,
              const std::byte* scale, const std::byte* shift, const std::byte* mean,
              const std::byte* variance, bool through_statistics, std::byte* dx, std::byte* dscale,
              std::byte* dshift, std::byte* scratch, std::int64_t begin, std::int64_t end) {
  with_floating(geometry.dtype, [&]<typename T>(T) {
    Channels<T>(geometry, scratch, begin, end)
        .gradient(elements<T>(dy), elements<T>(x), elements<T>(scale), elements<T>(shift), elements<T>(mean),
                  elements<T>(variance), through_statistics, elements<T>(dx), elements<T>(dscale),
                  elements<T>(dshift));
  });
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(statistics);
HWY_EXPORT(normalize);
HWY_EXPORT(gradient);

std::size_t ChannelGeometry::scratch_bytes(std::int64_t count) const {
  constexpr std::size_t arrays = 10;
  return arrays * static_cast<std::size_t>(count) * sizeof(double);
}

void batch_statistics(const ChannelGeometry& geometry, const std::byte* x, std::byte* mean,
                      std::byte* variance, std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(statistics)(geometry, x, mean, variance, scratch, begin, end);
}

void batch_normalize(const ChannelGeometry& geometry, const std::byte* x, const std::byte* scale,
                     const std::byte* shift, const std::byte* mean, const std::byte* variance,
                     const std::byte* summand, std::byte* y, std::byte* scratch, std::int64_t begin,
                     std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(normalize)(geometry, x, scale, shift, mean, variance, summand, y, scratch, begin, end);
}

void batch_normalize_gradient(const ChannelGeometry& geometry, const std::byte* dy, const std::byte* x,
                              const std::byte* scale, const std::byte* shift, const std::byte* mean,
                              const std::byte* variance, bool through_statistics, std::byte* dx,
                              std::byte* dscale, std::byte* dshift, std::byte* scratch, std::int64_t begin,
                              std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(gradient)
  (geometry, dy, x, scale, shift, mean, variance, through_statistics, dx, dscale, dshift, scratch, begin,
   end);
}

}  // namespace purine::cpu
#endif
