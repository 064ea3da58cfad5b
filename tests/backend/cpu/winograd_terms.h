// How far Winograd's convolution may differ from plain sums, element by element: with u = 2^-24, a result
// that is made of terms t_i by k roundings each is off by at most k u sum |t_i| (first order in u), and what
// the transforms make of the terms' absolute values is computed here in f64.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "purine/core/shape.h"
#include "purine/ops/convolution.h"
#include "tests/backend/cpu/compare_kernels.h"

namespace purine::test {

using ops::Conv2dOptions;

using Matrix = std::vector<std::vector<double>>;

/// The absolute values of the three matrices for m outputs and a kernel of r, from their definition: with the
/// points p_i and N(x) = product of (x - p_i), row i of B^T is N(x) / (x - p_i), of G is (1, p_i, ...,
/// p_i^(r - 1)) / N'(p_i), of A is (1, p_i, ..., p_i^(m - 1)); the last ones, for infinity, are N(x),
/// (0, ..., 0, 1) and (0, ..., 0, 1).
struct Transforms {
  Transforms(int outputs, int kernel) : m(outputs), r(kernel), n(outputs + kernel - 1) {
    const double root = std::sqrt(0.5);
    const std::vector<double> points =
        n == 4 ? std::vector<double>{0, 1, -1} : std::vector<double>{0, root, -root, 2 * root, -2 * root};
    for (std::size_t i = 0; i < points.size(); ++i) {
      double derivative = 1;
      for (std::size_t j = 0; j < points.size(); ++j) derivative *= j == i ? 1 : points[i] - points[j];
      b.push_back(product_without(points, i));
      g.push_back(powers(points[i], r, derivative));
      a.push_back(powers(points[i], m, 1));
    }
    b.push_back(product_without(points, points.size()));
    g.push_back(last_unit(r));
    a.push_back(last_unit(m));
    for (Matrix* matrix : {&b, &g, &a}) {
      for (std::vector<double>& row : *matrix) {
        for (double& value : row) value = std::abs(value);
      }
    }
  }

  int m;
  int r;
  int n;
  Matrix b;  // |B^T|, n x n
  Matrix g;  // |G|, n x r
  Matrix a;  // |A|, n x m

 private:
  /// The n coefficients of the product of (x - p) over all points but one.
  std::vector<double> product_without(const std::vector<double>& points, std::size_t left_out) const {
    std::vector<double> polynomial(static_cast<std::size_t>(n));
    polynomial[0] = 1;
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (j == left_out) continue;
      for (std::size_t k = polynomial.size(); k-- > 0;) {
        polynomial[k] = (k == 0 ? 0 : polynomial[k - 1]) - points[j] * polynomial[k];
      }
    }
    return polynomial;
  }
  static std::vector<double> powers(double point, int count, double divisor) {
    std::vector<double> row;
    for (int k = 0; k < count; ++k) row.push_back(std::pow(point, k) / divisor);
    return row;
  }
  static std::vector<double> last_unit(int count) {
    std::vector<double> row(static_cast<std::size_t>(count));
    row.back() = 1;
    return row;
  }
};

/// matrix * x * matrix^T for a square x; `transposed` for matrix^T * x * matrix.
inline Matrix both_sides(const Matrix& matrix, const Matrix& x, bool transposed = false) {
  const std::size_t rows = transposed ? matrix[0].size() : matrix.size();
  const auto factor = [&](std::size_t i, std::size_t k) { return transposed ? matrix[k][i] : matrix[i][k]; };
  Matrix half(rows, std::vector<double>(x.size()));
  Matrix result(rows, std::vector<double>(rows));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      for (std::size_t k = 0; k < x.size(); ++k) half[i][j] += factor(i, k) * x[k][j];
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      for (std::size_t k = 0; k < x.size(); ++k) result[i][j] += half[i][k] * factor(j, k);
    }
  }
  return result;
}

inline void add_products(const Matrix& a, const Matrix& b, Matrix& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::size_t j = 0; j < sum.size(); ++j) sum[i][j] += a[i][j] * b[i][j];
  }
}

inline Matrix square(int extent) {
  const auto size = static_cast<std::size_t>(extent);
  return Matrix(size, std::vector<double>(size));
}

/// |x| of one image of one channel, from (row, column) on; 0 outside.
inline Matrix pixels(const Array& images, std::int64_t sample, std::int64_t channel, std::int64_t row,
                     std::int64_t column, int extent) {
  const Shape& shape = images.shape();
  Matrix result = square(extent);
  for (int i = 0; i < extent; ++i) {
    for (int j = 0; j < extent; ++j) {
      if (row + i < 0 || row + i >= shape[2] || column + j < 0 || column + j >= shape[3]) continue;
      const std::int64_t at = ((sample * shape[1] + channel) * shape[2] + row + i) * shape[3] + column + j;
      result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = std::abs(images.at(at));
    }
  }
  return result;
}

/// Calls function(sample, row, column) for each tile of m x m of a grid.
inline void for_tiles(const Shape& grid, int m,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& function) {
  for (std::int64_t s = 0; s < grid[0]; ++s) {
    for (std::int64_t i = 0; i < grid[2]; i += m) {
      for (std::int64_t j = 0; j < grid[3]; j += m) function(s, i, j);
    }
  }
}

/// Sums of the terms' absolute values of every result; `weight(o, c, p, q)` is between its channel o and the
/// image's c.
inline Array forward_terms(const Transforms& t, const Array& image, const Shape& result_shape,
                           std::int64_t top, std::int64_t left,
                           const std::function<double(std::int64_t, std::int64_t, int, int)>& weight) {
  Array result({result_shape, DType::f64});
  const std::int64_t channels = image.shape()[1];
  std::vector<Matrix> weights;
  for (std::int64_t o = 0; o < result_shape[1]; ++o) {
    for (std::int64_t c = 0; c < channels; ++c) {
      Matrix w = square(t.r);
      for (int p = 0; p < t.r; ++p) {
        for (int q = 0; q < t.r; ++q)
          w[static_cast<std::size_t>(p)][static_cast<std::size_t>(q)] = std::abs(weight(o, c, p, q));
      }
      weights.push_back(both_sides(t.g, w));
    }
  }
  for_tiles(result_shape, t.m, [&](std::int64_t s, std::int64_t row, std::int64_t column) {
    std::vector<Matrix> transformed;
    for (std::int64_t c = 0; c < channels; ++c) {
      transformed.push_back(both_sides(t.b, pixels(image, s, c, row - top, column - left, t.n)));
    }
    for (std::int64_t o = 0; o < result_shape[1]; ++o) {
      Matrix sum = square(t.n);
      for (std::int64_t c = 0; c < channels; ++c) {
        add_products(transformed[static_cast<std::size_t>(c)],
                     weights[static_cast<std::size_t>(o * channels + c)], sum);
      }
      const Matrix tile = both_sides(t.a, sum, true);
      for (std::int64_t i = row; i < std::min(row + t.m, result_shape[2]); ++i) {
        for (std::int64_t j = column; j < std::min(column + t.m, result_shape[3]); ++j) {
          result.set(((s * result_shape[1] + o) * result_shape[2] + i) * result_shape[3] + j,
                     tile[static_cast<std::size_t>(i - row)][static_cast<std::size_t>(j - column)]);
        }
      }
    }
  });
  return result;
}

inline Array weight_gradient_terms(const Transforms& t, const Array& image, const Array& output_gradient,
                                   const Conv2dOptions& options) {
  const std::int64_t channels = image.shape()[1];
  const std::int64_t outputs = output_gradient.shape()[1];
  Array result({{outputs, channels, t.r, t.r}, DType::f64});
  std::vector<Matrix> sums(static_cast<std::size_t>(outputs * channels), square(t.n));
  for_tiles(output_gradient.shape(), t.m, [&](std::int64_t s, std::int64_t row, std::int64_t column) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      const Matrix gradient = both_sides(t.a, pixels(output_gradient, s, o, row, column, t.m));
      for (std::int64_t c = 0; c < channels; ++c) {
        add_products(
            gradient,
            both_sides(t.b, pixels(image, s, c, row - options.padding[0], column - options.padding[1], t.n)),
            sums[static_cast<std::size_t>(o * channels + c)]);
      }
    }
  });
  std::int64_t at = 0;
  for (const Matrix& sum : sums) {
    for (const std::vector<double>& row : both_sides(t.g, sum, true)) {
      for (const double value : row) result.set(at++, value);
    }
  }
  return result;
}

/// Of the input gradient by the transpose; `weight(o, c, p, q)` is between the output's channel o and the
/// image's c.
inline Array transposed_terms(const Transforms& t, const Array& output_gradient, const Shape& image_shape,
                              const Conv2dOptions& options,
                              const std::function<double(std::int64_t, std::int64_t, int, int)>& weight) {
  Array result({image_shape, DType::f64});
  const std::int64_t outputs = output_gradient.shape()[1];
  std::vector<Matrix> weights;
  for (std::int64_t c = 0; c < image_shape[1]; ++c) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      Matrix w = square(t.r);
      for (int p = 0; p < t.r; ++p) {
        for (int q = 0; q < t.r; ++q)
          w[static_cast<std::size_t>(p)][static_cast<std::size_t>(q)] = std::abs(weight(o, c, p, q));
      }
      weights.push_back(both_sides(t.g, w));
    }
  }
  for_tiles(output_gradient.shape(), t.m, [&](std::int64_t s, std::int64_t row, std::int64_t column) {
    std::vector<Matrix> transformed;
    for (std::int64_t o = 0; o < outputs; ++o) {
      transformed.push_back(both_sides(t.a, pixels(output_gradient, s, o, row, column, t.m)));
    }
    for (std::int64_t c = 0; c < image_shape[1]; ++c) {
      Matrix sum = square(t.n);
      for (std::int64_t o = 0; o < outputs; ++o) {
        add_products(transformed[static_cast<std::size_t>(o)],
                     weights[static_cast<std::size_t>(c * outputs + o)], sum);
      }
      const Matrix tile = both_sides(t.b, sum, true);
      for (int p = 0; p < t.n; ++p) {
        for (int q = 0; q < t.n; ++q) {
          const std::int64_t i = row - options.padding[0] + p;
          const std::int64_t j = column - options.padding[1] + q;
          if (i < 0 || i >= image_shape[2] || j < 0 || j >= image_shape[3]) continue;
          const std::int64_t at = ((s * image_shape[1] + c) * image_shape[2] + i) * image_shape[3] + j;
          result.set(at, result.at(at) + tile[static_cast<std::size_t>(p)][static_cast<std::size_t>(q)]);
        }
      }
    }
  });
  return result;
}

}  // namespace purine::test
