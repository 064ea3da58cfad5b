#include "purine/backend/cpu/winograd_transforms.h"

#include <algorithm>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/winograd_transforms.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The transforms of one dimension for r = 3, m = 2; see the header for the matrices. Each reads vectors
/// `stride` apart and writes its results one after the other.
struct Tile3To2 {
  static constexpr int kernel = 3;
  static constexpr int outputs = 2;
  static constexpr int points = 4;

  /// B^T x.
  template <typename D, typename V>
  static HWY_INLINE void input(D, const V* x, int stride, V* to) {
    to[0] = hn::Sub(x[0], x[2 * stride]);
    to[1] = hn::Add(x[stride], x[2 * stride]);
    to[2] = hn::Sub(x[2 * stride], x[stride]);
    to[3] = hn::Sub(x[3 * stride], x[stride]);
  }
  /// B z.
  template <typename D, typename V>
  static HWY_INLINE void input_gradient(D, const V* z, int stride, V* to) {
    to[0] = z[0];
    to[1] = hn::Sub(hn::Sub(z[stride], z[2 * stride]), z[3 * stride]);
    to[2] = hn::Sub(hn::Add(z[stride], z[2 * stride]), z[0]);
    to[3] = z[3 * stride];
  }
  /// G w.
  template <typename D, typename V>
  static HWY_INLINE void weight(D d, const V* w, int stride, V* to) {
    const V half = hn::Set(d, 0.5F);
    const V outer = hn::Mul(half, hn::Add(w[0], w[2 * stride]));
    to[0] = w[0];
    to[1] = hn::MulAdd(half, w[stride], outer);
    to[2] = hn::NegMulAdd(half, w[stride], outer);
    to[3] = w[2 * stride];
  }
  /// A^T z.
  template <typename D, typename V>
  static HWY_INLINE void output(D, const V* z, int stride, V* to) {
    to[0] = hn::Add(z[0], hn::Add(z[stride], z[2 * stride]));
    to[1] = hn::Add(hn::Sub(z[stride], z[2 * stride]), z[3 * stride]);
  }
  /// A dy.
  template <typename D, typename V>
  static HWY_INLINE void output_gradient(D, const V* dy, int stride, V* to) {
    to[0] = dy[0];
    to[1] = hn::Add(dy[0], dy[stride]);
    to[2] = hn::Sub(dy[0], dy[stride]);
    to[3] = dy[stride];
  }
  /// G^T z.
  template <typename D, typename V>
  static HWY_INLINE void weight_gradient(D d, const V* z, int stride, V* to) {
    const V half = hn::Set(d, 0.5F);
    const V sum = hn::Add(z[stride], z[2 * stride]);
    to[0] = hn::MulAdd(half, sum, z[0]);
    to[1] = hn::Mul(half, hn::Sub(z[stride], z[2 * stride]));
    to[2] = hn::MulAdd(half, sum, z[3 * stride]);
  }
};

/// What all tiles of 6 x 6 pixels have in common. What the points a and -a, or b and -b, share is computed
/// once.
struct SixPoints {
  static constexpr int points = 6;
  static constexpr float a = 0.707106781F;
  static constexpr float b = 1.414213562F;

  template <typename D, typename V>
  static HWY_INLINE void input(D d, const V* x, int stride, V* to) {
    const V x1 = x[stride], x2 = x[2 * stride], x3 = x[3 * stride], x4 = x[4 * stride];
    const V middle = hn::Set(d, 2.5F);
    const V half = hn::Set(d, 0.5F);
    const V two = hn::Set(d, 2.0F);
    const V even_a = hn::NegMulAdd(two, x2, x4);
    const V odd_a = hn::NegMulAdd(two, x1, x3);
    const V even_b = hn::NegMulAdd(half, x2, x4);
    const V odd_b = hn::NegMulAdd(half, x1, x3);
    to[0] = hn::Add(hn::NegMulAdd(middle, x2, x4), x[0]);
    to[1] = hn::MulAdd(hn::Set(d, a), odd_a, even_a);
    to[2] = hn::NegMulAdd(hn::Set(d, a), odd_a, even_a);
    to[3] = hn::MulAdd(hn::Set(d, b), odd_b, even_b);
    to[4] = hn::NegMulAdd(hn::Set(d, b), odd_b, even_b);
    to[5] = hn::Add(hn::NegMulAdd(middle, x3, x1), x[5 * stride]);
  }
  template <typename D, typename V>
  static HWY_INLINE void input_gradient(D d, const V* z, int stride, V* to) {
    const V z0 = z[0], z5 = z[5 * stride];
    const V sum_a = hn::Add(z[stride], z[2 * stride]);
    const V sum_b = hn::Add(z[3 * stride], z[4 * stride]);
    const V difference_a = hn::Mul(hn::Set(d, a), hn::Sub(z[stride], z[2 * stride]));
    const V difference_b = hn::Mul(hn::Set(d, b), hn::Sub(z[3 * stride], z[4 * stride]));
    const V middle = hn::Set(d, 2.5F);
    const V half = hn::Set(d, 0.5F);
    const V two = hn::Set(d, 2.0F);
    to[0] = z0;
    to[1] = hn::NegMulAdd(two, difference_a, hn::NegMulAdd(half, difference_b, z5));
    to[2] = hn::Neg(hn::MulAdd(middle, z0, hn::MulAdd(two, sum_a, hn::Mul(half, sum_b))));
    to[3] = hn::NegMulAdd(middle, z5, hn::Add(difference_a, difference_b));
    to[4] = hn::Add(z0, hn::Add(sum_a, sum_b));
    to[5] = z5;
  }
};

/// r = 3, m = 4.
struct Tile3To4 : SixPoints {
  static constexpr int kernel = 3;
  static constexpr int outputs = 4;

  template <typename D, typename V>
  static HWY_INLINE void weight(D d, const V* w, int stride, V* to) {
    const V even_a = hn::Mul(hn::Set(d, -2.0F / 3), hn::MulAdd(hn::Set(d, 0.5F), w[2 * stride], w[0]));
    const V even_b = hn::Mul(hn::Set(d, 1.0F / 6), hn::MulAdd(hn::Set(d, 2.0F), w[2 * stride], w[0]));
    const V factor_a = hn::Set(d, -2.0F / 3 * a);
    const V factor_b = hn::Set(d, 1.0F / 6 * b);
    to[0] = w[0];
    to[1] = hn::MulAdd(factor_a, w[stride], even_a);
    to[2] = hn::NegMulAdd(factor_a, w[stride], even_a);
    to[3] = hn::MulAdd(factor_b, w[stride], even_b);
    to[4] = hn::NegMulAdd(factor_b, w[stride], even_b);
    to[5] = w[2 * stride];
  }
  template <typename D, typename V>
  static HWY_INLINE void output(D d, const V* z, int stride, V* to) {
    const V sum_a = hn::Add(z[stride], z[2 * stride]);
    const V difference_a = hn::Sub(z[stride], z[2 * stride]);
    const V sum_b = hn::Add(z[3 * stride], z[4 * stride]);
    const V difference_b = hn::Sub(z[3 * stride], z[4 * stride]);
    to[0] = hn::Add(z[0], hn::Add(sum_a, sum_b));
    to[1] = hn::MulAdd(hn::Set(d, a), difference_a, hn::Mul(hn::Set(d, b), difference_b));
    to[2] = hn::MulAdd(hn::Set(d, 0.5F), sum_a, hn::Add(sum_b, sum_b));
    to[3] = hn::MulAdd(hn::Set(d, a / 2), difference_a,
                       hn::MulAdd(hn::Set(d, 2 * b), difference_b, z[5 * stride]));
  }
  template <typename D, typename V>
  static HWY_INLINE void output_gradient(D d, const V* dy, int stride, V* to) {
    const V even_a = hn::MulAdd(hn::Set(d, 0.5F), dy[2 * stride], dy[0]);
    const V odd_a = hn::MulAdd(hn::Set(d, 0.5F), dy[3 * stride], dy[stride]);
    const V even_b = hn::MulAdd(hn::Set(d, 2.0F), dy[2 * stride], dy[0]);
    const V odd_b = hn::MulAdd(hn::Set(d, 2.0F), dy[3 * stride], dy[stride]);
    to[0] = dy[0];
    to[1] = hn::MulAdd(hn::Set(d, a), odd_a, even_a);
    to[2] = hn::NegMulAdd(hn::Set(d, a), odd_a, even_a);
    to[3] = hn::MulAdd(hn::Set(d, b), odd_b, even_b);
    to[4] = hn::NegMulAdd(hn::Set(d, b), odd_b, even_b);
    to[5] = dy[3 * stride];
  }
  template <typename D, typename V>
  static HWY_INLINE void weight_gradient(D d, const V* z, int stride, V* to) {
    const V sum_a = hn::Mul(hn::Set(d, -2.0F / 3), hn::Add(z[stride], z[2 * stride]));
    const V sum_b = hn::Mul(hn::Set(d, 1.0F / 6), hn::Add(z[3 * stride], z[4 * stride]));
    const V difference_a = hn::Sub(z[stride], z[2 * stride]);
    const V difference_b = hn::Sub(z[3 * stride], z[4 * stride]);
    to[0] = hn::Add(z[0], hn::Add(sum_a, sum_b));
    to[1] =
        hn::MulAdd(hn::Set(d, -2.0F / 3 * a), difference_a, hn::Mul(hn::Set(d, 1.0F / 6 * b), difference_b));
    to[2] = hn::MulAdd(hn::Set(d, 0.5F), sum_a, hn::MulAdd(hn::Set(d, 2.0F), sum_b, z[5 * stride]));
  }
};

/// r = 5, m = 2.
struct Tile5To2 : SixPoints {
  static constexpr int kernel = 5;
  static constexpr int outputs = 2;

  template <typename D, typename V>
  static HWY_INLINE void weight(D d, const V* w, int stride, V* to) {
    const V w0 = w[0], w1 = w[stride], w2 = w[2 * stride], w3 = w[3 * stride], w4 = w[4 * stride];
    const V half = hn::Set(d, 0.5F);
    const V two = hn::Set(d, 2.0F);
    const V even_a = hn::Mul(hn::Set(d, -2.0F / 3), hn::MulAdd(half, hn::MulAdd(half, w4, w2), w0));
    const V even_b = hn::Mul(hn::Set(d, 1.0F / 6), hn::MulAdd(two, hn::MulAdd(two, w4, w2), w0));
    const V odd_a = hn::MulAdd(half, w3, w1);
    const V odd_b = hn::MulAdd(two, w3, w1);
    const V factor_a = hn::Set(d, -2.0F / 3 * a);
    const V factor_b = hn::Set(d, 1.0F / 6 * b);
    to[0] = w0;
    to[1] = hn::MulAdd(factor_a, odd_a, even_a);
    to[2] = hn::NegMulAdd(factor_a, odd_a, even_a);
    to[3] = hn::MulAdd(factor_b, odd_b, even_b);
    to[4] = hn::NegMulAdd(factor_b, odd_b, even_b);
    to[5] = w4;
  }
  template <typename D, typename V>
  static HWY_INLINE void output(D d, const V* z, int stride, V* to) {
    const V z1 = z[stride], z2 = z[2 * stride], z3 = z[3 * stride], z4 = z[4 * stride];
    to[0] = hn::Add(z[0], hn::Add(hn::Add(z1, z2), hn::Add(z3, z4)));
    to[1] =
        hn::MulAdd(hn::Set(d, a), hn::Sub(z1, z2), hn::MulAdd(hn::Set(d, b), hn::Sub(z3, z4), z[5 * stride]));
  }
  template <typename D, typename V>
  static HWY_INLINE void output_gradient(D d, const V* dy, int stride, V* to) {
    to[0] = dy[0];
    to[1] = hn::MulAdd(hn::Set(d, a), dy[stride], dy[0]);
    to[2] = hn::NegMulAdd(hn::Set(d, a), dy[stride], dy[0]);
    to[3] = hn::MulAdd(hn::Set(d, b), dy[stride], dy[0]);
    to[4] = hn::NegMulAdd(hn::Set(d, b), dy[stride], dy[0]);
    to[5] = dy[stride];
  }
  template <typename D, typename V>
  static HWY_INLINE void weight_gradient(D d, const V* z, int stride, V* to) {
    const V sum_a = hn::Mul(hn::Set(d, -2.0F / 3), hn::Add(z[stride], z[2 * stride]));
    const V sum_b = hn::Mul(hn::Set(d, 1.0F / 6), hn::Add(z[3 * stride], z[4 * stride]));
    const V difference_a = hn::Mul(hn::Set(d, -2.0F / 3 * a), hn::Sub(z[stride], z[2 * stride]));
    const V difference_b = hn::Mul(hn::Set(d, 1.0F / 6 * b), hn::Sub(z[3 * stride], z[4 * stride]));
    const V half = hn::Set(d, 0.5F);
    const V two = hn::Set(d, 2.0F);
    to[0] = hn::Add(z[0], hn::Add(sum_a, sum_b));
    to[1] = hn::Add(difference_a, difference_b);
    to[2] = hn::MulAdd(half, sum_a, hn::Mul(two, sum_b));
    to[3] = hn::MulAdd(half, difference_a, hn::Mul(two, difference_b));
    to[4] = hn::MulAdd(hn::Set(d, 0.25F), sum_a, hn::MulAdd(hn::Set(d, 4.0F), sum_b, z[5 * stride]));
  }
};

/// Calls function(tag, index) for vectors that cover [0, count), some numbers perhaps twice, which must give
/// the same again: whole vectors, the last of which ends with the last number, or single numbers where there
/// are too few.
template <typename Function>
HWY_INLINE void for_vectors(std::int64_t count, Function function) {
  const hn::ScalableTag<float> full;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(full));
  std::int64_t at = 0;
  for (; at + lanes <= count; at += lanes) function(full, at);
  if (at < count && at > 0) {
    function(full, count - lanes);
    return;
  }
  const hn::CappedTag<float, 1> single;
  for (; at < count; ++at) function(single, at);
}

template <typename Tile>
void input(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step) {
  constexpr int n = Tile::points;
  for_vectors(channels, [&](auto d, std::int64_t c) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V columns[n * n];  // transformed columns, one after the other
    for (int j = 0; j < n; ++j) {
      V x[n];
      for (int i = 0; i < n; ++i) x[i] = hn::LoadU(d, pixels[i * n + j] + c);
      Tile::input(d, x, 1, columns + j * n);
    }
    for (int i = 0; i < n; ++i) {
      V row[n];
      Tile::input(d, columns + i, n, row);
      for (int j = 0; j < n; ++j) hn::StoreU(row[j], d, to + (i * n + j) * step + c);
    }
  });
}

template <typename Tile>
void output_gradient(const float* const* pixels, std::int64_t first, std::int64_t channels, float* to,
                     std::int64_t step) {
  constexpr int n = Tile::points;
  constexpr int m = Tile::outputs;
  for_vectors(channels, [&](auto d, std::int64_t c) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V columns[m * n];
    for (int j = 0; j < m; ++j) {
      V dy[m];
      for (int i = 0; i < m; ++i) dy[i] = hn::LoadU(d, pixels[i * m + j] + first + c);
      Tile::output_gradient(d, dy, 1, columns + j * n);
    }
    for (int i = 0; i < n; ++i) {
      V row[n];
      Tile::output_gradient(d, columns + i, n, row);
      for (int j = 0; j < n; ++j) hn::StoreU(row[j], d, to + (i * n + j) * step + c);
    }
  });
}

template <typename Tile>
void output(const float* from, std::int64_t step, std::int64_t channels, const float* bias, float* to,
            std::int64_t row_step, std::int64_t column_step, std::int64_t rows, std::int64_t columns) {
  constexpr int n = Tile::points;
  constexpr int m = Tile::outputs;
  for_vectors(channels, [&](auto d, std::int64_t c) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V transformed[n * m];
    for (int j = 0; j < n; ++j) {
      V z[n];
      for (int i = 0; i < n; ++i) z[i] = hn::LoadU(d, from + (i * n + j) * step + c);
      Tile::output(d, z, 1, transformed + j * m);
    }
    const V summand = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + c);
    for (std::int64_t i = 0; i < rows; ++i) {
      V row[m];
      Tile::output(d, transformed + i, m, row);
      for (std::int64_t j = 0; j < columns; ++j) {
        hn::StoreU(hn::Add(row[j], summand), d, to + i * row_step + j * column_step + c);
      }
    }
  });
}

template <typename Tile>
void input_gradient(const float* from, std::int64_t step, std::int64_t channels, float* to,
                    std::int64_t row_step, std::int64_t column_step) {
  constexpr int n = Tile::points;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  for (std::int64_t c = 0; c < channels; c += static_cast<std::int64_t>(hn::Lanes(d))) {
    V transformed[n * n];  // columns, one after the other
    for (int j = 0; j < n; ++j) {
      V z[n];
      for (int i = 0; i < n; ++i) z[i] = hn::Load(d, from + (i * n + j) * step + c);
      Tile::input_gradient(d, z, 1, transformed + j * n);
    }
    for (int i = 0; i < n; ++i) {
      V row[n];
      Tile::input_gradient(d, transformed + i, n, row);
      for (int j = 0; j < n; ++j) {
        float* pixel = to + i * row_step + j * column_step + c;
        hn::Store(hn::Add(hn::Load(d, pixel), row[j]), d, pixel);
      }
    }
  }
}

template <typename Tile>
void weight(const float* from, std::int64_t output_step, std::int64_t input_step, bool turned,
            std::int64_t channels, std::int64_t count, std::int64_t columns, float* to, std::int64_t step) {
  constexpr int n = Tile::points;
  constexpr int kernel = Tile::kernel;
  constexpr int taps = kernel * kernel;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<decltype(d)> di;
  for (std::int64_t o = 0; o < columns; o += lanes) {
    // Lanes past the last output channel read the last one's weights, and give 0.
    const std::int64_t here = std::clamp<std::int64_t>(count - o, 0, lanes);
    const auto last = hn::Set(di, static_cast<std::int32_t>(std::max<std::int64_t>(here - 1, 0)));
    const auto index =
        hn::Mul(hn::Min(hn::Iota(di, 0), last), hn::Set(di, static_cast<std::int32_t>(output_step)));
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(here));
    const float* base = from + std::min(o, count - 1) * output_step;
    for (std::int64_t c = 0; c < channels; ++c) {
      V w[taps];
      for (int t = 0; t < taps; ++t) {
        const float* element = base + c * input_step + (turned ? taps - 1 - t : t);
        w[t] = hn::IfThenElseZero(inside, hn::GatherIndex(d, element, index));
      }
      V transformed[kernel * n];
      for (int j = 0; j < kernel; ++j) Tile::weight(d, w + j, kernel, transformed + j * n);
      for (int i = 0; i < n; ++i) {
        V row[n];
        Tile::weight(d, transformed + i, n, row);
        for (int j = 0; j < n; ++j) hn::StoreU(row[j], d, to + (i * n + j) * step + c * columns + o);
      }
    }
  }
}

template <typename Tile>
void weight_gradient(const float* from, std::int64_t step, std::int64_t count, float* to,
                     std::int64_t output_step) {
  constexpr int n = Tile::points;
  constexpr int kernel = Tile::kernel;
  for_vectors(count, [&](auto d, std::int64_t o) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V transformed[n * kernel];
    for (int j = 0; j < n; ++j) {
      V z[n];
      for (int i = 0; i < n; ++i) z[i] = hn::LoadU(d, from + (i * n + j) * step + o);
      Tile::weight_gradient(d, z, 1, transformed + j * kernel);
    }
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    HWY_ALIGN float lane_values[hn::MaxLanes(hn::ScalableTag<float>())];
    for (int i = 0; i < kernel; ++i) {
      V row[kernel];
      Tile::weight_gradient(d, transformed + i, kernel, row);
      for (int j = 0; j < kernel; ++j) {
        hn::Store(row[j], d, lane_values);
        float* element = to + o * output_step + i * kernel + j;
        for (std::int64_t lane = 0; lane < lanes; ++lane) element[lane * output_step] = lane_values[lane];
      }
    }
  });
}

template <typename Tile>
constexpr WinogradTransforms transforms = {
    Tile::kernel, Tile::outputs,         Tile::points,         input<Tile>,          weight<Tile>,
    output<Tile>, output_gradient<Tile>, input_gradient<Tile>, weight_gradient<Tile>};

const WinogradTransforms* transforms_of(int kernel, int outputs) {
  for (const WinogradTransforms* each :
       {&transforms<Tile3To2>, &transforms<Tile3To4>, &transforms<Tile5To2>}) {
    if (each->kernel == kernel && each->outputs == outputs) return each;
  }
  return nullptr;
}

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(transforms_of);

const WinogradTransforms* winograd_transforms(int kernel, int outputs) {
  return HWY_DYNAMIC_DISPATCH(transforms_of)(kernel, outputs);
}

}  // namespace purine::cpu
#endif
