// The linear transforms of Winograd's convolution with 3 x 3 kernels (Lavin, Gray, "Fast algorithms for
// convolutional neural networks", 2015), on pixels whose channels lie side by side.
#pragma once

#include <cstdint>

namespace purine::cpu {

/// A tile of m x m outputs needs (m + 2) x (m + 2) pixels, and as many multiplications a pair of channels
/// where the definition needs 9 m^2: 16 for 36 with m = 2, 36 for 144 with m = 4. With B^T, G and A^T as
/// below,
///
///   y  = A^T [sum over input channels of (G w G^T) * (B^T x B)] A        (* by elements)
///   dw = G^T [sum over tiles of (A dy A^T) * (B^T x B)] G
///
/// the second being the transpose of the first in w. A polynomial of degree m + 1 is evaluated at m + 1
/// points and at infinity: 0, 1, -1 with m = 2; 0, a, -a, b, -b with m = 4, where a = sqrt(1/2) and b =
/// sqrt(2) make the root mean square error in f32 about 1.6 times that of plain sums; with 1 and 2, the usual
/// points, it is 3.7 times (128 channels of normal values).
///
///   m = 2: B^T = [1  0 -1  0]    G = [  1   0   0]    A^T = [1 1  1 0]
///                [0  1  1  0]        [1/2 1/2 1/2]          [0 1 -1 1]
///                [0 -1  1  0]        [1/2-1/2 1/2]
///                [0 -1  0  1]        [  0   0   1]
///
///   m = 4: B^T = [1   0 -5/2    0 1 0]   G = [   1      0    0]   A^T = [1    1     1    1     1  0]
///                [0 -2a   -2    a 1 0]       [-2/3 -2/3 a -1/3]         [0    a    -a    b    -b  0]
///                [0  2a   -2   -a 1 0]       [-2/3  2/3 a -1/3]         [0  1/2   1/2    2     2  0]
///                [0 -b/2 -1/2   b 1 0]       [ 1/6  1/6 b  1/3]         [0  a/2  -a/2   2b   -2b  1]
///                [0  b/2 -1/2  -b 1 0]       [ 1/6 -1/6 b  1/3]
///                [0    1    0 -5/2 0 1]      [   0      0    1]
///
/// Transformed tiles are stored by element: element (i, j) of the (m + 2) x (m + 2) lies at
/// (i * (m + 2) + j) * `step` and holds one number a channel.
struct WinogradTransforms {
  int outputs = 0;  ///< m
  int points = 0;   ///< m + 2

  /// B^T x B. `pixels` are (m + 2)^2 pixels of `channels` numbers.
  void (*input)(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step);
  /// G w G^T for `count` of `columns` output channels, the others being 0: `to` is [channels, columns] for
  /// each element. Element t of the kernel (0 to 8) from input channel c to output channel o lies at
  /// weight[o * output_step + c * input_step + t]; `turned` takes 8 - t instead.
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
  /// G^T z G for `count` output channels: element t of the kernel goes to to[o * output_step + t].
  void (*weight_gradient)(const float* from, std::int64_t step, std::int64_t count, float* to,
                          std::int64_t output_step);
};

/// For tiles of m = 2 or 4 outputs a side, with the best instructions of this processor.
const WinogradTransforms& winograd_transforms(int outputs);

}  // namespace purine::cpu
