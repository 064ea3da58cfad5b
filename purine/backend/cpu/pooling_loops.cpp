#include "purine/backend/cpu/pooling_loops.h"

#include <algorithm>
#include <array>
#include <limits>

#include "purine/backend/cpu/pooling_windows.h"
#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/pooling_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t block = PoolGeometry::block;

// A vector holds neighbouring channels of one pixel. Planes are brought into that order in scratch memory
// first, `block` channels at a time.

/// Calls function(tag, channel) for vectors that cover all channels: whole ones, then of four, then single
/// elements.
template <typename T, typename Function>
HWY_INLINE void for_channels(std::int64_t channels, Function function) {
  std::int64_t channel = 0;
  const auto cover = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; channel + lanes <= channels; channel += lanes) function(d, channel);
  };
  cover(hn::ScalableTag<T>());
  cover(hn::CappedTag<T, 4>());
  cover(hn::CappedTag<T, 1>());
}

/// The integers that go with a vector of floating elements: as many, of the same size.
template <class D>
using Integers = hn::RebindToSigned<D>;

template <class D, typename I>
HWY_INLINE void store_index(D, hn::Vec<Integers<D>> values, I* index) {
  const Integers<D> integers;
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(I)) {
    hn::StoreU(values, integers, index);
  } else if constexpr (sizeof(hn::TFromD<D>) == sizeof(std::int32_t)) {
    const hn::Rebind<I, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, values), narrow, index);
  } else {
    HWY_ALIGN std::array<std::int64_t, hn::MaxLanes(D())> buffer;
    hn::Store(values, integers, buffer.data());
    for (std::size_t i = 0; i < buffer.size(); ++i) index[i] = static_cast<I>(buffer[i]);
  }
}

template <class D, typename I>
HWY_INLINE hn::Vec<Integers<D>> load_index(D, const I* index) {
  const Integers<D> integers;
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(I)) {
    return hn::LoadU(integers, index);
  } else if constexpr (sizeof(hn::TFromD<D>) == sizeof(std::int32_t)) {
    return hn::PromoteTo(integers, hn::LoadU(hn::Rebind<I, D>(), index));
  } else {
    HWY_ALIGN std::array<std::int64_t, hn::MaxLanes(D())> buffer;
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = index[i];
    return hn::Load(integers, buffer.data());
  }
}

template <typename T, typename I>
void max_pool_channels_last(const PoolGeometry& g, const T* x, T* y, I* index) {
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    const Cover rows = cover_of(g.vertical, g.height, i);
    for (std::int64_t j = 0; j < g.out_width; ++j) {
      const Cover columns = cover_of(g.horizontal, g.width, j);
      for_channels<T>(g.channels, [&](auto d, std::int64_t channel) HWY_ATTR {
        const Integers<decltype(d)> integers;
        using Integer = hn::TFromD<Integers<decltype(d)>>;
        auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
        auto at = hn::Set(integers, static_cast<Integer>(rows.first * g.horizontal.kernel + columns.first));
        for (std::int64_t row = rows.begin; row < rows.end; ++row) {
          const T* from = x + (row * g.width + columns.begin) * g.channels + channel;
          auto element =
              static_cast<Integer>((rows.first + row - rows.begin) * g.horizontal.kernel + columns.first);
          for (std::int64_t column = columns.begin; column < columns.end; ++column) {
            const auto value = hn::LoadU(d, from);
            const auto greater = hn::Or(hn::Gt(value, best), hn::IsNaN(value));
            best = hn::IfThenElse(greater, value, best);
            at = hn::IfThenElse(hn::RebindMask(integers, greater), hn::Set(integers, element), at);
            from += g.channels;
            ++element;
          }
        }
        const std::int64_t to = (i * g.out_width + j) * g.channels + channel;
        hn::StoreU(best, d, y + to);
        store_index(d, at, index + to);
      });
    }
  }
}

/// Sums over the windows that cover a pixel: term(tag, offset of the result, element of the window).
template <typename T, typename Term>
void gather_channels_last(const PoolGeometry& g, T* dx, Term term) {
  Covering rows(g.vertical, g.out_height);
  for (std::int64_t row = 0; row < g.height; ++row, rows.advance()) {
    Covering columns(g.horizontal, g.out_width);
    for (std::int64_t column = 0; column < g.width; ++column, columns.advance()) {
      for_channels<T>(g.channels, [&](auto d, std::int64_t channel) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::int64_t i = rows.begin(); i < rows.end(); ++i) {
          const std::int64_t p = row + g.vertical.before - i * g.vertical.stride;
          for (std::int64_t j = columns.begin(); j < columns.end(); ++j) {
            const std::int64_t q = column + g.horizontal.before - j * g.horizontal.stride;
            sum = hn::Add(sum,
                          term(d, (i * g.out_width + j) * g.channels + channel, p * g.horizontal.kernel + q));
          }
        }
        hn::StoreU(sum, d, dx + (row * g.width + column) * g.channels + channel);
      });
    }
  }
}

template <typename T, typename I>
void max_pool_gradient_channels_last(const PoolGeometry& g, const T* dy, const I* index, T* dx) {
  gather_channels_last(g, dx, [&](auto d, std::int64_t from, std::int64_t element) HWY_ATTR {
    const Integers<decltype(d)> integers;
    using Integer = hn::TFromD<Integers<decltype(d)>>;
    const auto chosen = hn::Eq(load_index(d, index + from), hn::Set(integers, static_cast<Integer>(element)));
    return hn::IfThenElseZero(hn::RebindMask(d, chosen), hn::LoadU(d, dy + from));
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

/// Divides each gradient once, into `quotients`, which may be `dy`, and not for every pixel of its window.
template <typename T>
void average_pool_gradient_channels_last(const PoolGeometry& g, const T* dy, T* quotients, T* dx) {
  for (std::int64_t i = 0; i < g.out_height; ++i) {
    for (std::int64_t j = 0; j < g.out_width; ++j) {
      const T count = divisor<T>(g, i, j);
      const std::int64_t first = (i * g.out_width + j) * g.channels;
      for_channels<T>(g.channels, [&](auto d, std::int64_t channel) HWY_ATTR {
        const auto quotient = hn::Div(hn::LoadU(d, dy + first + channel), hn::Set(d, count));
        hn::StoreU(quotient, d, quotients + first + channel);
      });
    }
  }
  gather_channels_last(g, dx, [&](auto d, std::int64_t from, std::int64_t) HWY_ATTR {
    return hn::LoadU(d, quotients + from);
  });
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

/// Calls function(channel, first pixel, last pixel) for tiles that stay in the first-level cache.
template <typename Function>
HWY_INLINE void for_tiles(std::int64_t channels, std::int64_t pixels, Function function) {
  constexpr std::int64_t tile = 64;
  for (std::int64_t first = 0; first < pixels; first += tile) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      function(channel, first, std::min(first + tile, pixels));
    }
  }
}

/// The planes of `count` channels as pixels of `block` channels; those that are missing become 0.
template <typename E>
void interleave(const E* planes, std::int64_t count, std::int64_t pixels, E* to) {
  if (count < block) std::fill_n(to, pixels * block, E{0});
  for_tiles(count, pixels, [&](std::int64_t channel, std::int64_t first, std::int64_t last) {
    const E* plane = planes + channel * pixels;
    for (std::int64_t pixel = first; pixel < last; ++pixel) to[pixel * block + channel] = plane[pixel];
  });
}

template <typename E>
void deinterleave(const E* from, std::int64_t count, std::int64_t pixels, E* planes) {
  for_tiles(count, pixels, [&](std::int64_t channel, std::int64_t first, std::int64_t last) {
    E* plane = planes + channel * pixels;
    for (std::int64_t pixel = first; pixel < last; ++pixel) plane[pixel] = from[pixel * block + channel];
  });
}

/// Calls function(first channel's plane, channels) for all blocks of channels of the samples.
template <typename Function>
void for_blocks(const PoolGeometry& g, std::int64_t begin, std::int64_t end, Function function) {
  for (std::int64_t sample = begin; sample < end; ++sample) {
    for (std::int64_t channel = 0; channel < g.channels; channel += block) {
      function(sample * g.channels + channel, std::min(block, g.channels - channel));
    }
  }
}

/// A block of channels in scratch memory: the image, the results and the maxima's indices.
template <typename T, typename I = std::uint8_t>
struct BlockMemory {
  BlockMemory(const PoolGeometry& g, std::byte* scratch)
      : image(reinterpret_cast<T*>(scratch)),
        results(image + g.height * g.width * block),
        index(reinterpret_cast<I*>(results + g.out_height * g.out_width * block)) {}
  T* image;
  T* results;
  I* index;
};

PoolGeometry block_geometry(PoolGeometry g) {
  g.channels = block;
  g.layout = Layout::channels_last;
  return g;
}

template <typename T, typename I>
void max_pool_samples(const PoolGeometry& g, const T* x, T* y, I* index, std::byte* scratch,
                      std::int64_t begin, std::int64_t end) {
  if (g.layout == Layout::channels_last) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      const std::int64_t to = sample * g.pooled_elements();
      max_pool_channels_last(g, x + sample * g.image_elements(), y + to, index + to);
    }
    return;
  }
  const PoolGeometry inner = block_geometry(g);
  const BlockMemory<T, I> memory(g, scratch);
  for_blocks(g, begin, end, [&](std::int64_t plane, std::int64_t count) {
    const std::int64_t to = plane * g.out_height * g.out_width;
    interleave(x + plane * g.height * g.width, count, g.height * g.width, memory.image);
    max_pool_channels_last(inner, memory.image, memory.results, memory.index);
    deinterleave(memory.results, count, g.out_height * g.out_width, y + to);
    deinterleave(memory.index, count, g.out_height * g.out_width, index + to);
  });
}

template <typename T, typename I>
void max_pool_gradient_samples(const PoolGeometry& g, const T* dy, const I* index, T* dx, std::byte* scratch,
                               std::int64_t begin, std::int64_t end) {
  if (g.layout == Layout::channels_last) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      const std::int64_t from = sample * g.pooled_elements();
      max_pool_gradient_channels_last(g, dy + from, index + from, dx + sample * g.image_elements());
    }
    return;
  }
  const PoolGeometry inner = block_geometry(g);
  const BlockMemory<T, I> memory(g, scratch);
  for_blocks(g, begin, end, [&](std::int64_t plane, std::int64_t count) {
    const std::int64_t from = plane * g.out_height * g.out_width;
    interleave(dy + from, count, g.out_height * g.out_width, memory.results);
    interleave(index + from, count, g.out_height * g.out_width, memory.index);
    max_pool_gradient_channels_last(inner, memory.results, memory.index, memory.image);
    deinterleave(memory.image, count, g.height * g.width, dx + plane * g.height * g.width);
  });
}

template <typename T>
void average_pool_samples(const PoolGeometry& g, const T* x, T* y, std::byte* scratch, std::int64_t begin,
                          std::int64_t end) {
  if (g.layout == Layout::channels_last) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      average_pool_channels_last(g, x + sample * g.image_elements(), y + sample * g.pooled_elements());
    }
    return;
  }
  if (is_global(g)) {
    for (std::int64_t plane = begin * g.channels; plane < end * g.channels; ++plane) {
      y[plane] = average_of(x + plane * g.height * g.width, g.height * g.width);
    }
    return;
  }
  const PoolGeometry inner = block_geometry(g);
  const BlockMemory<T> memory(g, scratch);
  for_blocks(g, begin, end, [&](std::int64_t plane, std::int64_t count) {
    interleave(x + plane * g.height * g.width, count, g.height * g.width, memory.image);
    average_pool_channels_last(inner, memory.image, memory.results);
    deinterleave(memory.results, count, g.out_height * g.out_width, y + plane * g.out_height * g.out_width);
  });
}

template <typename T>
void average_pool_gradient_samples(const PoolGeometry& g, const T* dy, T* dx, std::byte* scratch,
                                   std::int64_t begin, std::int64_t end) {
  if (g.layout == Layout::channels_last) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      average_pool_gradient_channels_last(g, dy + sample * g.pooled_elements(), reinterpret_cast<T*>(scratch),
                                          dx + sample * g.image_elements());
    }
    return;
  }
  if (is_global(g)) {
    for (std::int64_t plane = begin * g.channels; plane < end * g.channels; ++plane) {
      std::fill_n(dx + plane * g.height * g.width, g.height * g.width, dy[plane] / divisor<T>(g, 0, 0));
    }
    return;
  }
  const PoolGeometry inner = block_geometry(g);
  const BlockMemory<T> memory(g, scratch);
  for_blocks(g, begin, end, [&](std::int64_t plane, std::int64_t count) {
    interleave(dy + plane * g.out_height * g.out_width, count, g.out_height * g.out_width, memory.results);
    average_pool_gradient_channels_last(inner, memory.results, memory.results, memory.image);
    deinterleave(memory.image, count, g.height * g.width, dx + plane * g.height * g.width);
  });
}

template <typename E>
const E* elements(const std::byte* bytes) {
  return reinterpret_cast<const E*>(bytes);
}

template <typename E>
E* elements(std::byte* bytes) {
  return reinterpret_cast<E*>(bytes);
}

void run_max_pool(const PoolGeometry& g, const std::byte* x, std::byte* y, std::byte* index,
                  std::byte* scratch, std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    max_pool_samples(g, elements<T>(x), elements<T>(y), elements<I>(index), scratch, begin, end);
  });
}

void run_max_pool_gradient(const PoolGeometry& g, const std::byte* dy, const std::byte* index, std::byte* dx,
                           std::byte* scratch, std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    max_pool_gradient_samples(g, elements<T>(dy), elements<I>(index), elements<T>(dx), scratch, begin, end);
  });
}

void run_max_pool_select(const PoolGeometry& g, const std::byte* x, const std::byte* index, std::byte* y,
                         std::int64_t begin, std::int64_t end) {
  with_types(g, [&]<typename T, typename I>(T, I) {
    for (std::int64_t sample = begin; sample < end; ++sample) {
      max_pool_select_sample(g, elements<T>(x) + sample * g.image_elements(),
                             elements<I>(index) + sample * g.pooled_elements(),
                             elements<T>(y) + sample * g.pooled_elements());
    }
  });
}

void run_average_pool(const PoolGeometry& g, const std::byte* x, std::byte* y, std::byte* scratch,
                      std::int64_t begin, std::int64_t end) {
  with_floating(g.dtype, [&]<typename T>(T) {
    average_pool_samples(g, elements<T>(x), elements<T>(y), scratch, begin, end);
  });
}

void run_average_pool_gradient(const PoolGeometry& g, const std::byte* dy, std::byte* dx, std::byte* scratch,
                               std::int64_t begin, std::int64_t end) {
  with_floating(g.dtype, [&]<typename T>(T) {
    average_pool_gradient_samples(g, elements<T>(dy), elements<T>(dx), scratch, begin, end);
  });
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(run_max_pool);
HWY_EXPORT(run_max_pool_gradient);
HWY_EXPORT(run_max_pool_select);
HWY_EXPORT(run_average_pool);
HWY_EXPORT(run_average_pool_gradient);

void max_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* index,
              std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_max_pool)(geometry, x, y, index, scratch, begin, end);
}

void max_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, const std::byte* index,
                       std::byte* dx, std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_max_pool_gradient)(geometry, dy, index, dx, scratch, begin, end);
}

void max_pool_select(const PoolGeometry& geometry, const std::byte* x, const std::byte* index, std::byte* y,
                     std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_max_pool_select)(geometry, x, index, y, begin, end);
}

void average_pool(const PoolGeometry& geometry, const std::byte* x, std::byte* y, std::byte* scratch,
                  std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_average_pool)(geometry, x, y, scratch, begin, end);
}

void average_pool_gradient(const PoolGeometry& geometry, const std::byte* dy, std::byte* dx,
                           std::byte* scratch, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(run_average_pool_gradient)(geometry, dy, dx, scratch, begin, end);
}

}  // namespace purine::cpu
#endif
