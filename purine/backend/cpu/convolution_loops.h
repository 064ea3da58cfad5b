// Convolution in f64 by plain loops: what finite differences and the f32 kernels are compared with.
#pragma once

#include <memory>

#include "purine/ops/convolution.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// Inputs image, weight and, with `has_bias`, bias; image and output have the layout.
std::unique_ptr<Kernel> convolution_loops(const Shape& image, const Shape& weight, const Shape& output,
                                          const ops::Conv2dOptions& options, Layout layout, bool has_bias);

/// Inputs the output's gradient and weight; output the image's gradient.
std::unique_ptr<Kernel> convolution_input_gradient_loops(const Shape& image, const Shape& weight,
                                                         const Shape& output,
                                                         const ops::Conv2dOptions& options, Layout layout);

/// Inputs image and the output's gradient; outputs the weight's and, with `has_bias`, the bias's gradient.
std::unique_ptr<Kernel> convolution_weight_gradient_loops(const Shape& image, const Shape& weight,
                                                          const Shape& output,
                                                          const ops::Conv2dOptions& options, Layout layout,
                                                          bool has_bias);

}  // namespace purine::cpu
