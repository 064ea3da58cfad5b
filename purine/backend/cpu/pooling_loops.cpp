#include "purine/backend/cpu/pooling_loops.h"

#include <algorithm>
#include <array>
#include <limits>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/pooling_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// With the channels last, a vector holds neighbouring channels of one pixel, and the loops go over windows.
// In plain layout it holds neighbouring results of one row, which lie `stride` apart in the image: those
// loops are left to the compiler, in chunks that fit into a few registers.

constexpr std::int64_t chunk = 64;

/// Calls function(tag, channel) for vectors that cover all channels: whole ones, then single elements.
template <typename T, typename Function>
HWY_INLINE void for_channels(std::int64_t channels, Function function) {
  const hn::ScalableTag<T> full;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(full));
  std::int64_t channel = 0;
  for (; channel + lanes <= channels; channel += lanes) function(full, channel);
  const hn::CappedTag<T, 1> single;
  for (; channel < channels; ++channel) function(single, channel);
}

template <class D, typename I>
HWY_INLINE void store_index(D d, hn::Vec<D> values, I* index) {
  HWY_ALIGN std::array<hn::TFromD<D>, hn::MaxLanes(D())> buffer;
  hn::Store(values, d, buffer.data());
  for (std::size_t i = 0; i < buffer.size(); ++i) index[i] = static_cast<I>(buffer[i]);
}

template <class D, typename I>
HWY_INLINE hn::Vec<D> load_index(D d, const I* index) {
  HWY_ALIGN std::array<hn::TFromD<D>, hn::MaxLanes(D())> buffer;
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<hn::TFromD<D>>(index[i]);
  return hn::Load(d, buffer.data());
}

template <typename T, typename I>
void max_pool_channels_last(const PoolGeometry& g, const T* x, T* y, I* index) {
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    const Cover rows = cover_of(g.vertical, g.height, i);
    for (std::int64_t j = 0; j < g.out_width; ++j) {
      const Cover columns = cover_of(g.horizontal, g.width, j);
      for_channels<T>(g.channels, [&](auto d, std::int64_t channel) HWY_ATTR {
        auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
        auto at = hn::Set(d, static_cast<T>(rows.first * g.horizontal.kernel + columns.first));
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          const T* from = x + (row * g.width + columns.begin) * g.channels + channel;
          auto k = static_cast<T>((rows.first + row - rows.begin) * g.horizontal.kernel + columns.first);
          for (std::int64_t column = columns.begin; column < columns.end; ++column) {
            const auto value = hn::LoadU(d, from);
            const auto greater = hn::Or(hn::Gt(value, best), hn::Ne(value, value));
            best = hn::IfThenElse(greater, value, best);
            at = hn::IfThenElse(greater, hn::Set(d, k), at);
            from += g.channels;
            k += T{1};
          }
        }
        const std::int64_t to = (i * g.out_width + j) * g.channels + channel;
        hn::StoreU(best, d, y + to);
        store_index(d, at, index + to);
      });
    }
  }
}

/// The results [first, first + count) of a row whose window element `q` lies in the image.
HWY_INLINE std::pair<std::int64_t, std::int64_t> columns_with(const PoolGeometry& g, std::int64_t q,
                                                              std::int64_t first, std::int64_t count) {
  const std::int64_t stride = g.horizontal.stride;
  const std::int64_t missing = g.horizontal.before - q;  // columns that result 0 lacks
  const std::int64_t begin = missing > 0 ? (missing + stride - 1) / stride : 0;
  const std::int64_t room = g.width - 1 + missing;
  const std::int64_t end = room >= 0 ? room / stride + 1 : 0;
  return {std::clamp(begin - first, std::int64_t{0}, count), std::clamp(end - first, std::int64_t{0}, count)};
}

/// Calls function(row of the image, first element of it, p, q, begin, end, …) for every element of the
/// windows of the results [first, first + count) in row i: those of [begin, end) cover it, `stride` apart
/// from `from`.
template <typename T, typename Function>
HWY_INLINE void for_window_elements(const PoolGeometry& g, const T* plane, std::int64_t i, std::int64_t first,
                                    std::int64_t count, Function function) {
  const Cover rows = cover_of(g.vertical, g.height, i);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t p = rows.first + row - rows.begin;
    for (std::int64_t q = 0; q < g.horizontal.kernel; ++q) {
      const auto [begin, end] = columns_with(g, q, first, count);
      const std::int64_t offset = (first + begin) * g.horizontal.stride - g.horizontal.before + q;
      if (begin < end) function(plane + row * g.width + offset, p * g.horizontal.kernel + q, begin, end);
    }
  }
}

template <std::int64_t fixed_stride, typename T, typename I>
void max_pool_plane(const PoolGeometry& g, const T* x, T* y, I* index) {
  const std::int64_t stride = fixed_stride > 0 ? fixed_stride : g.horizontal.stride;
  std::array<T, chunk> best;
  std::array<std::int32_t, chunk> at;
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    const std::int64_t first_row = cover_of(g.vertical, g.height, i).first * g.horizontal.kernel;
    for (std::int64_t first = 0; first < g.out_width; first += chunk) {
      const std::int64_t count = std::min(chunk, g.out_width - first);
      for (std::int64_t j = 0; j < count; ++j) {
        best[static_cast<std::size_t>(j)] = -std::numeric_limits<T>::infinity();
        at[static_cast<std::size_t>(j)] =
            static_cast<std::int32_t>(first_row + cover_of(g.horizontal, g.width, first + j).first);
      }
      for_window_elements(g, x, i, first, count,
                          [&](const T* from, std::int64_t k, std::int64_t begin, std::int64_t end) HWY_ATTR {
                            T* HWY_RESTRICT best_from = best.data() + begin;
                            std::int32_t* HWY_RESTRICT at_from = at.data() + begin;
                            const auto element = static_cast<std::int32_t>(k);
                            for (std::int64_t j = 0; j < end - begin; ++j) {
                              const T value = from[j * stride];
                              const bool greater = value > best_from[j] || value != value;
                              best_from[j] = greater ? value : best_from[j];
                              at_from[j] = greater ? element : at_from[j];
                            }
                          });
      const std::int64_t to = i * g.out_width + first;
      for (std::int64_t j = 0; j < count; ++j) {
        y[to + j] = best[static_cast<std::size_t>(j)];
        index[to + j] = static_cast<I>(at[static_cast<std::size_t>(j)]);
      }
    }
  }
}

/// The results whose windows cover element `at` along one dimension, [begin, end).
HWY_INLINE std::pair<std::int64_t, std::int64_t> positions_over(const ops::Window& window,
                                                                std::int64_t positions, std::int64_t at) {
  const std::int64_t padded = at + window.before;
  const std::int64_t begin = padded < window.kernel ? 0 : (padded - window.kernel) / window.stride + 1;
  return {begin, std::min(positions, padded / window.stride + 1)};
}

/// Sums over the windows that cover a pixel: term(tag, offset of the result, element of the window).
template <typename T, typename Term>
void gather_channels_last(const PoolGeometry& g, T* dx, Term term) {
  for (std::int64_t row = 0; row < g.height; ++row) {
    const auto [i_begin, i_end] = positions_over(g.vertical, g.out_height, row);
    for (std::int64_t column = 0; column < g.width; ++column) {
      const auto [j_begin, j_end] = positions_over(g.horizontal, g.out_width, column);
      for_channels<T>(g.channels, [&, i_first = i_begin, i_last = i_end, j_first = j_begin, j_last = j_end](
                                      auto d, std::int64_t channel) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::int64_t i = i_first; i < i_last; ++i) {
          const std::int64_t p = row + g.vertical.before - i * g.vertical.stride;
          for (std::int64_t j = j_first; j < j_last; ++j) {
            const std::int64_t q = column + g.horizontal.before - j * g.horizontal.stride;
            sum = hn::Add(sum, term(d, (i * g.out_width + j) * g.channels + channel, i, j,
                                    p * g.horizontal.kernel + q));
          }
        }
        hn::StoreU(sum, d, dx + (row * g.width + column) * g.channels + channel);
      });
    }
  }
}

template <typename T, typename I>
void max_pool_gradient_channels_last(const PoolGeometry& g, const T* dy, const I* index, T* dx) {
  gather_channels_last(
      g, dx, [&](auto d, std::int64_t from, std::int64_t, std::int64_t, std::int64_t element) HWY_ATTR {
        const auto chosen = hn::Eq(load_index(d, index + from), hn::Set(d, static_cast<T>(element)));
        return hn::IfThenElseZero(chosen, hn::LoadU(d, dy + from));
      });
}

/// The offset in the image that an index of result (i, j) means, in pixels; -1 in the padding.
HWY_INLINE std::int64_t pixel_of(const PoolGeometry& g, std::int64_t i, std::int64_t j, std::int64_t index) {
  const std::int64_t row = i * g.vertical.stride - g.vertical.before + index / g.horizontal.kernel;
  const std::int64_t column = j * g.horizontal.stride - g.horizontal.before + index % g.horizontal.kernel;
  if (row < 0 || row >= g.height || column < 0 || column >= g.width) return -1;
  return row * g.width + column;
}

template <typename T, typename I>
void max_pool_gradient_plane(const PoolGeometry& g, const T* dy, const I* index, T* dx) {
  std::fill_n(dx, g.height * g.width, T{0});
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    for (std::int64_t j = 0; j < g.out_width; ++j) {
      const std::int64_t from = i * g.out_width + j;
      const std::int64_t pixel = pixel_of(g, i, j, static_cast<std::int64_t>(index[from]));
      if (pixel >= 0) dx[pixel] += dy[from];
    }
  }
}

template <typename T, typename I>
void max_pool_select_sample(const PoolGeometry& g, const T* x, const I* index, T* y) {
  const bool last = g.layout == Layout::channels_last;
  const std::int64_t pixel_step = last ? g.channels : 1;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    const T* plane = last ? x + c : x + c * g.height * g.width;
    const std::int64_t first = last ? c : c * g.out_height * g.out_width;
    for (std::int64_t i = 0; i < g.out_height; ++i) {
      for (std::int64_t j = 0; j < g.out_width; ++j) {
        const std::int64_t at = first + (i * g.out_width + j) * pixel_step;
        const std::int64_t pixel = pixel_of(g, i, j, static_cast<std::int64_t>(index[at]));
        y[at] = pixel >= 0 ? plane[pixel * pixel_step] : T{0};
      }
    }
  }
}

/// Elements of a window that an average counts: those of the image, or with `include_pad` the padding's too.
HWY_INLINE std::int64_t counted(const ops::Window& window, std::int64_t extent, std::int64_t position,
                                bool include_pad) {
  const std::int64_t start = position * window.stride - window.before;
  const std::int64_t end = start + window.kernel;
  if (include_pad) return std::min(end, extent + window.after) - start;
  return std::min(end, extent) - std::max<std::int64_t>(start, 0);
}

template <typename T>
HWY_INLINE T divisor(const PoolGeometry& g, std::int64_t i, std::int64_t j) {
  return static_cast<T>(counted(g.vertical, g.height, i, g.count_include_pad) *
                        counted(g.horizontal, g.width, j, g.count_include_pad));
}

template <typename T>
void average_pool_channels_last(const PoolGeometry& g, const T* x, T* y) {
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    const Cover rows = cover_of(g.vertical, g.height, i);
    for (std::int64_t j = 0; j < g.out_width; ++j) {
      const Cover columns = cover_of(g.horizontal, g.width, j);
      const T count = divisor<T>(g, i, j);
      for_channels<T>(g.channels, [&](auto d, std::int64_t channel) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          const T* from = x + (row * g.width + columns.begin) * g.channels + channel;
          for (std::int64_t column = columns.begin; column < columns.end; ++column) {
            sum = hn::Add(sum, hn::LoadU(d, from));
            from += g.channels;
          }
        }
        hn::StoreU(hn::Div(sum, hn::Set(d, count)), d, y + (i * g.out_width + j) * g.channels + channel);
      });
    }
  }
}

/// True where there is one window, the image itself.
HWY_INLINE bool is_global(const PoolGeometry& g) {
  return g.out_height == 1 && g.out_width == 1 && g.vertical.kernel == g.height &&
         g.horizontal.kernel == g.width;
}

/// The average of all elements, in lanes that are added up at the end.
template <typename T>
T average_of(const T* x, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  std::array<T, lanes> sums{};
  std::int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[static_cast<std::size_t>(lane)] += x[at + lane];
  }
  T sum = 0;
  for (; at < count; ++at) sum += x[at];
  for (const T lane : sums) sum += lane;
  return sum / static_cast<T>(count);
}

template <std::int64_t fixed_stride, typename T>
void average_pool_plane(const PoolGeometry& g, const T* x, T* y) {
  const std::int64_t stride = fixed_stride > 0 ? fixed_stride : g.horizontal.stride;
  if (is_global(g)) {
    y[0] = average_of(x, g.height * g.width);
    return;
  }
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    T* row = y + i * g.out_width;
    std::fill_n(row, g.out_width, T{0});
    for_window_elements(g, x, i, 0, g.out_width,
                        [&](const T* from, std::int64_t, std::int64_t begin, std::int64_t end) HWY_ATTR {
                          T* HWY_RESTRICT sums = row + begin;
                          for (std::int64_t j = 0; j < end - begin; ++j) sums[j] += from[j * stride];
                        });
    for (std::int64_t j = 0; j < g.out_width; ++j) row[j] /= divisor<T>(g, i, j);
  }
}

template <typename T>
void average_pool_gradient_channels_last(const PoolGeometry& g, const T* dy, T* dx) {
  gather_channels_last(g, dx,
                       [&](auto d, std::int64_t from, std::int64_t i, std::int64_t j, std::int64_t) HWY_ATTR {
                         return hn::Div(hn::LoadU(d, dy + from), hn::Set(d, divisor<T>(g, i, j)));
                       });
}

template <std::int64_t fixed_stride, typename T>
void average_pool_gradient_plane(const PoolGeometry& g, const T* dy, T* dx) {
  const std::int64_t stride = fixed_stride > 0 ? fixed_stride : g.horizontal.stride;
  std::array<T, chunk> shares;
  if (is_global(g)) {
    std::fill_n(dx, g.height * g.width, dy[0] / divisor<T>(g, 0, 0));
    return;
  }
  std::fill_n(dx, g.height * g.width, T{0});
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    for (std::int64_t first = 0; first < g.out_width; first += chunk) {
      const std::int64_t count = std::min(chunk, g.out_width - first);
      for (std::int64_t j = 0; j < count; ++j) {
        shares[static_cast<std::size_t>(j)] = dy[i * g.out_width + first + j] / divisor<T>(g, i, first + j);
      }
      for_window_elements(g, static_cast<const T*>(dx), i, first, count,
                          [&](const T* covered, std::int64_t, std::int64_t begin, std::int64_t end) HWY_ATTR {
                            T* HWY_RESTRICT to = dx + (covered - dx);
                            const T* share = shares.data() + begin;
                            for (std::int64_t j = 0; j < end - begin; ++j) to[j * stride] += share[j];
                          });
    }
  }
}

/// Calls function(T{}, I{}) with the types of the elements and of the maxima's indices.
template <typename Function>
void with_types(const PoolGeometry& g, Function function) {
  with_floating(g.dtype, [&](auto element) {
    if (g.index_dtype == DType::u8) {
      function(element, std::uint8_t{});
    } else {
      function(element, std::int32_t{});
    }
  });
}

/// Calls function(stride) with the stride as a constant where it is a frequent one, else 0.
template <typename Function>
void with_stride(const PoolGeometry& g, Function function) {
  switch (g.horizontal.stride) {
    case 1:
      return function(std::integral_constant<std::int64_t, 1>{});
    case 2:
      return function(std::integral_constant<std::int64_t, 2>{});
    default:
      return function(std::integral_constant<std::int64_t, 0>{});
  }
}

/// Calls function(image offset, result offset) for every plane of the samples, or for whole samples where the
/// channels are last.
template <typename Function>
void for_planes(const PoolGeometry& g, std::int64_t begin, std::int64_t end, Function function) {
  const std::int64_t planes = g.layout == Layout::channels_last ? 1 : g.channels;
  for (std::int64_t plane = begin * planes; plane < end * planes; ++plane) {
    function(plane * (g.image_elements() / planes), plane * (g.pooled_elements() / planes));
  }
}

void max_pool_samples(const PoolGeometry& g, const std::byte* x, std::byte* y, std::byte* index,
                      std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    for_planes(g, begin, end, [&](std::int64_t image, std::int64_t result) {
      const T* from = reinterpret_cast<const T*>(x) + image;
      T* to = reinterpret_cast<T*>(y) + result;
      I* at = reinterpret_cast<I*>(index) + result;
      if (g.layout == Layout::channels_last) return max_pool_channels_last(g, from, to, at);
      with_stride(g, [&](auto stride) { max_pool_plane<stride.value>(g, from, to, at); });
    });
  });
}

void max_pool_gradient_samples(const PoolGeometry& g, const std::byte* dy, const std::byte* index,
                               std::byte* dx, std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    for_planes(g, begin, end, [&](std::int64_t image, std::int64_t result) {
      const T* from = reinterpret_cast<const T*>(dy) + result;
      const I* at = reinterpret_cast<const I*>(index) + result;
      T* to = reinterpret_cast<T*>(dx) + image;
      if (g.layout == Layout::channels_last) return max_pool_gradient_channels_last(g, from, at, to);
      max_pool_gradient_plane(g, from, at, to);
    });
  });
}

void max_pool_select_samples(const PoolGeometry& g, const std::byte* x, const std::byte* index, std::byte* y,
                             std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      max_pool_select_sample(g, reinterpret_cast<const T*>(x) + sample * g.image_elements(),
                             reinterpret_cast<const I*>(index) + sample * g.pooled_elements(),
                             reinterpret_cast<T*>(y) + sample * g.pooled_elements());
    }
  });
}

void average_pool_samples(const PoolGeometry& g, const std::byte* x, std::byte* y, std::int64_t begin,
                          std::int64_t end) {
  with_floating(g.dtype, [&]<typename T>(T) {
    for_planes(g, begin, end, [&](std::int64_t image, std::int64_t result) {
      const T* from = reinterpret_cast<const T*>(x) + image;
      T* to = reinterpret_cast<T*>(y) + result;
      if (g.layout == Layout::channels_last) return average_pool_channels_last(g, from, to);
      with_stride(g, [&](auto stride) { average_pool_plane<stride.value>(g, from, to); });
    });
  });
}

void average_pool_gradient_samples(const PoolGeometry& g, const std::byte* dy, std::byte* dx,
                                   std::int64_t begin, std::int64_t end) {
  with_floating(g.dtype, [&]<typename T>(T) {
    for_planes(g, begin, end, [&](std::int64_t image, std::int64_t result) {
      const T* from = reinterpret_cast<const T*>(dy) + result;
      T* to = reinterpret_cast<T*>(dx) + image;
      if (g.layout == Layout::channels_last) return average_pool_gradient_channels_last(g, from, to);
      with_stride(g, [&](auto stride) { average_pool_gradient_plane<stride.value>(g, from, to); });
    });
  });
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

PoolGeometry::PoolGeometry(const Shape& image, const Shape& pooled, const ops::Pool2dOptions& options,
                           Layout image_layout, DType element_dtype)
    : channels(image[1]),
      height(image[2]),
      width(image[3]),
      out_height(pooled[2]),
      out_width(pooled[3]),
      vertical(options.vertical()),
      horizontal(options.horizontal()),
      count_include_pad(options.count_include_pad),
      layout(image_layout),
      dtype(element_dtype),
      index_dtype(options.index_dtype()) {}

HWY_EXPORT(max_pool_samples);
HWY_EXPORT(max_pool_gradient_samples);
HWY_EXPORT(max_pool_select_samples);
HWY_EXPORT(average_pool_samples);
HWY_EXPORT(average_pool_gradient_samples);

void max_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* index,
              std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool_samples)(geometry, x, y, index, begin, end);
}

void max_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, const std::byte* index,
                       std::byte* dx, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool_gradient_samples)(geometry, dy, index, dx, begin, end);
}

void max_pool_select(const PoolGeometry& geometry, const std::byte* x, const std::byte* index, std::byte* y,
                     std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_pool_select_samples)(geometry, x, index, y, begin, end);
}

void average_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::int64_t begin,
                  std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(average_pool_samples)(geometry, x, y, begin, end);
}

void average_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, std::byte* dx,
                           std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(average_pool_gradient_samples)(geometry, dy, dx, begin, end);
}

}  // namespace purine::cpu
#endif
