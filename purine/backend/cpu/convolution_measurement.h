// Which algorithm computes a convolution the fastest, found by trying.
#pragma once

#include <string>

#include "purine/backend/cpu/convolution_choice.h"

namespace purine::cpu {

/// All that the time of a convolution depends on but the machine, as stable text:
/// `forward [32, 64, 56, 56] [192, 64, 3, 3] stride=[1, 1] padding=[1, 1, 1, 1] …`.
std::string describe(ConvolutionPass pass, const ConvolutionProblem& problem);

/// Runs a part of the convolution by each algorithm that can compute it, and gives the one that takes the
/// least of the thread's processor time; `choose_convolution`'s, unless another one is clearly faster. Takes
/// some milliseconds to tenths of a second, and for that time memory for image, weight and result.
ConvolutionAlgorithm measure_convolution(ConvolutionPass pass, const ConvolutionProblem& problem);

/// What the measurements hold for: the processor, its vector instructions, and the versions of the kernels.
std::string measured_machine();

}  // namespace purine::cpu
