// Convolution with 3 x 3 or 5 x 5 kernels and stride 1 by Winograd's algorithm: fewer multiplications than
// the definition has, on images with the channels last.
#pragma once

#include <cstdint>
#include <memory>

#include "purine/core/shape.h"
#include "purine/ops/convolution.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// True where the algorithm can compute a convolution, in f32 and with the channels last, by tiles of `tile`
/// outputs a side: stride 1, one group, and 3 x 3 kernels with tiles of 2 or 4, or 5 x 5 with tiles of 2.
bool winograd_applies(const Shape& weight, const ops::Conv2dOptions& options, int tile);

/// The kernels of the three operators. Shapes as those of the operators: image [N, C, H, W], weight
/// [O, C, K, K], output [N, O, OH, OW], none empty. The work is divided into parts over tiles and output
/// channels of what is computed, by the shapes alone.
std::unique_ptr<Kernel> winograd_convolution(const Shape& image, const Shape& weight, const Shape& output,
                                             const ops::Conv2dOptions& options, bool has_bias, int tile);
std::unique_ptr<Kernel> winograd_input_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                const ops::Conv2dOptions& options, int tile);
std::unique_ptr<Kernel> winograd_weight_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                 const ops::Conv2dOptions& options, bool has_bias, int tile);

/// Tiles that winograd_input_gradient computes: those of the image, or, where they are fewer, as without
/// padding, those of the output, by the transpose of the algorithm (winograd_transposed.h).
std::int64_t winograd_input_gradient_tiles(const Shape& image, const Shape& weight, const Shape& output,
                                           int tile);

}  // namespace purine::cpu
