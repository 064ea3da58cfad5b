// The input gradient by the transpose of Winograd's convolution, for outputs that are smaller than the image.
#pragma once

#include <memory>

#include "purine/core/shape.h"
#include "purine/ops/convolution.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// True where winograd_transposed has less to do than a convolution of the output's gradient: where the
/// output has fewer tiles than the image, as without padding. It has to have few enough to work on whole
/// samples.
bool winograd_transposed_is_less(const Shape& image, const Shape& weight, const Shape& output, int tile);

/// The operator's inputs are the output's gradient [N, O, OH, OW] and the weight [O, C, K, K], its output the
/// image's gradient [N, C, H, W], none empty. Tiles of the output's gradient are transformed, multiplied and
/// transformed back to what they add to the image, where they overlap. Parts are some samples each.
std::unique_ptr<Kernel> winograd_transposed(const Shape& image, const Shape& weight, const Shape& output,
                                            const ops::Conv2dOptions& options, int tile);

}  // namespace purine::cpu
