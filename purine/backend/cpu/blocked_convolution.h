// Convolution as the definition sums it, as products of matrices in blocks of our own, on images with the
// channels last.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "purine/core/shape.h"
#include "purine/ops/convolution.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// True where it can compute a convolution, in f32 and with the channels last: one group, and on both sides a
/// number of channels that 16 divides.
bool blocked_applies(const Shape& image, const Shape& weight, const ops::Conv2dOptions& options);

/// The kernels of the three operators. Shapes as those of the operators: image [N, C, H, W], weight
/// [O, C, KH, KW], output [N, O, OH, OW], none empty. Sums are made of up to 512 products at a time, those of
/// a weight gradient of up to 192. The work is divided into parts over pixels, that of a weight gradient over
/// channels, by the shapes alone; no result depends on how.
std::unique_ptr<Kernel> blocked_convolution(const Shape& image, const Shape& weight, const Shape& output,
                                            const ops::Conv2dOptions& options, bool has_bias);
std::unique_ptr<Kernel> blocked_input_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                               const ops::Conv2dOptions& options);
std::unique_ptr<Kernel> blocked_weight_gradient(const Shape& image, const Shape& weight, const Shape& output,
                                                const ops::Conv2dOptions& options, bool has_bias);

/// The kernels of sibling_conv2d and its gradient, of an image [N, C, H, W] with a convolution to each of
/// `results` channels, all numbers of channels multiples of 16.
std::unique_ptr<Kernel> blocked_siblings(const Shape& image, const std::vector<std::int64_t>& results);
std::unique_ptr<Kernel> blocked_siblings_gradient(const Shape& image,
                                                  const std::vector<std::int64_t>& results, bool adds);

}  // namespace purine::cpu
