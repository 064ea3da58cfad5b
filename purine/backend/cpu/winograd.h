// Convolution with 3 x 3 kernels and stride 1 by Winograd's algorithm: fewer multiplications than the
// definition has, on images with the channels last.
#pragma once

#include <cstdint>
#include <memory>

#include "purine/core/shape.h"
#include "purine/ops/convolution.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// True where the algorithm can compute a convolution in f32 whose images have the channels last.
bool winograd_applies(const Shape& weight, const ops::Conv2dOptions& options);

/// The kernels of the three operators; `tile` is the outputs of a tile a side, 2 or 4. Shapes as those of the
/// operators: image [N, C, H, W], weight [O, C, 3, 3], output [N, O, OH, OW], none empty. The work is divided
/// into parts over tiles and output channels of what is computed, by the shapes alone.
std::unique_ptr<Kernel> winograd_convolution(const Shape& image, const Shape& weight, const Shape& output,
                                             const ops::Conv2dOptions& options, bool has_bias, int tile);
std::unique_ptr<Kernel> winograd_input_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                const ops::Conv2dOptions& options, int tile);
std::unique_ptr<Kernel> winograd_weight_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                 const ops::Conv2dOptions& options, bool has_bias, int tile);

}  // namespace purine::cpu
