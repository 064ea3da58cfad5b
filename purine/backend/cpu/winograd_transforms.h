// The linear transforms of Winograd's convolution (Lavin, Gray, "Fast algorithms for convolutional neural
// networks", 2015), on pixels whose channels lie side by side.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// With kernels of r x r a tile of m x m outputs needs n x n pixels, n = m + r - 1, and n^2 multiplications a
/// pair of channels where the definition needs r^2 m^2: 16 for 36 (m = 2, r = 3), 36 for 144 (m = 4, r = 3)
/// or 36 for 100 (m = 2, r = 5). With the matrices B^T, G and A^T,
///
///   y  = A^T [sum over input channels of (G w G^T) * (B^T x B)] A        (* by elements)
///   dw = G^T [sum over tiles of (A dy A^T) * (B^T x B)] G
///   dx = sum over tiles of B [sum over output channels of (G w G^T) * (A dy A^T)] B^T
///
/// the second and third being the transposes of the first in w and x; tiles of dx overlap. Row i of A is (1,
/// p, ..., p^(m - 1)) for the point p = p_i, row i of G is (1, p, ..., p^(r - 1)) / N'(p), and row i of B^T
/// has the coefficients of N(x) / (x - p), from x^0 on, with N(x) the product of all (x - p_i); the last
/// rows, for infinity, are (0, ..., 0, 1) of A and G, and N(x). The points are 0, 1, -1 for n = 4, and for n
/// = 6
///
///   0, a, -a, b, -b with a = sqrt(1/2), b = sqrt(2):    N(x) = x^5 - 5/2 x^3 + x,    N'(0, a, b) = 1, -3/2,
///   6
///
///   B^T = [1   0 -5/2    0 1 0]   G (r = 3) = [   1      0    0]   A^T (m = 4) = [1  1   1  1   1 0]
///         [0 -2a   -2    a 1 0]               [-2/3 -2/3 a -1/3]                 [0  a  -a  b  -b 0]
///         [0  2a   -2   -a 1 0]               [-2/3  2/3 a -1/3]                 [0 1/2 1/2 2   2 0]
///         [0 -b/2 -1/2   b 1 0]               [ 1/6  1/6 b  1/3]                 [0 a/2 -a/2 2b -2b 1]
///         [0  b/2 -1/2  -b 1 0]               [ 1/6 -1/6 b  1/3]
///         [0    1    0 -5/2 0 1]              [   0      0    1]
///
/// These make the root mean square error in f32 about 1.6 times (m = 4, r = 3) and 1.2 times (m = 2, r = 5)
/// that of plain sums over 128 channels of normal values; with 1 and 2, the usual points, it is 3.7 times.
///
/// Transformed tiles are stored by element: element (i, j) of the n x n lies at (i * n + j) * `step` and
/// holds one number a channel.
struct WinogradTransforms {
  int kernel = 0;   ///< r
  int outputs = 0;  ///< m
  int points = 0;   ///< n

  /// B^T x B. `pixels` are n^2 pixels of `channels` numbers.
  void (*input)(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step);
  /// G w G^T for `count` of `columns` output channels, the others being 0: `to` is [channels, columns] for
  /// each element. Element t of the kernel (below r^2) from input channel c to output channel o lies at
  /// weight[o * output_step + c * input_step + t]; `turned` takes r^2 - 1 - t instead.
  void (*weight)(const float* weight, std::int64_t output_step, std::int64_t input_step, bool turned,
                 std::int64_t channels, std::int64_t count, std::int64_t columns, float* to,
                 std::int64_t step);
  /// A^T z A, of which `rows` rows and `columns` columns of outputs are written, `row_step` and `column_step`
  /// numbers apart; `bias`, where there is one, is added.
  void (*output)(const float* from, std::int64_t step, std::int64_t channels, const float* bias, float* to,
                 std::int64_t row_step, std::int64_t column_step, std::int64_t rows, std::int64_t columns);
  /// A dy A^T, of numbers `first` to `first` + `channels` of m^2 pixels.
  void (*output_gradient)(const float* const* pixels, std::int64_t first, std::int64_t channels, float* to,
                          std::int64_t step);
  /// Adds B z B^T to n^2 pixels, `row_step` and `column_step` numbers apart; `channels` is a multiple of 16.
  void (*input_gradient)(const float* from, std::int64_t step, std::int64_t channels, float* to,
                         std::int64_t row_step, std::int64_t column_step);
  /// G^T z G for `count` output channels: element t of the kernel goes to to[o * output_step + t].
  void (*weight_gradient)(const float* from, std::int64_t step, std::int64_t count, float* to,
                          std::int64_t output_step);
};

/// With the best instructions of this processor; null where there are none for these extents.
const WinogradTransforms* winograd_transforms(int kernel, int outputs);

}  // namespace purine::cpu
