// The kernels of convolutions in f32, by algorithm.
#pragma once

#include <functional>
#include <memory>

#include "purine/backend/cpu/convolution_choice.h"
#include "purine/program/kernel.h"

namespace purine::cpu {

/// The kernel of conv2d, conv2d_input_gradient or conv2d_weight_gradient, whose inputs and outputs it has, on
/// at least one sample, with an algorithm that can compute it.
std::unique_ptr<Kernel> make_convolution(ConvolutionPass pass, const ConvolutionProblem& problem,
                                         ConvolutionAlgorithm algorithm);

using ChooseConvolution = std::function<ConvolutionAlgorithm(ConvolutionPass, const ConvolutionProblem&)>;

/// Gives the three operators kernels whose algorithms `choose` chooses; f64 is always computed by plain
/// loops.
void set_convolutions(KernelRegistry& registry, const ChooseConvolution& choose);

}  // namespace purine::cpu
