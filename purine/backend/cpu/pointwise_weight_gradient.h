// The weight gradient of convolutions with kernels of 1 x 1 and stride 1, in f32 with the channels last.
#pragma once

#include <memory>

#include "purine/backend/cpu/convolution_choice.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// True for a convolution whose weight gradient is a product of two matrices that lie as panel_product.h
/// takes them.
bool pointwise_weight_gradient_applies(const ConvolutionProblem& problem);

/// Inputs image and the output's gradient; outputs the weight's and, with `has_bias`, the bias's gradient. A
/// product of blocks of pixels that stay in the cache; the sums of a block are made from 0 before they join
/// those of others.
std::unique_ptr<Kernel> pointwise_weight_gradient(const ConvolutionProblem& problem);

}  // namespace purine::cpu
