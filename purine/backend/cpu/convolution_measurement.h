// Which algorithm computes a convolution the fastest, found by trying.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "purine/backend/cpu/convolution_choice.h"

namespace purine::cpu {

/// All that the time of a convolution depends on but the machine, as stable text:
/// `forward [32, 64, 56, 56] [192, 64, 3, 3] stride=[1, 1] padding=[1, 1, 1, 1] …`.
std::string describe(ConvolutionPass pass, const ConvolutionProblem& problem);

/// Memory to measure in, which grows as convolutions need it: new memory costs more time than what is
/// measured.
class MeasurementMemory {
 public:
  enum Use : std::uint8_t { first_input, second_input, result, bias, scratch, uses };
  /// At least so many floats, aligned as kernels need them, whose first values are not all the same. Valid
  /// until the same use needs more.
  std::byte* floats(Use use, std::int64_t count);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    std::int64_t count = 0;
  };
  std::array<Block, uses> blocks_;
};

/// Runs a part of the convolution by each algorithm that can compute it, and gives the one that takes the
/// least of the thread's processor time; `choose_convolution`'s, unless another one is clearly faster. Takes
/// some milliseconds to tenths of a second, and memory for image, weight and result.
ConvolutionAlgorithm measure_convolution(ConvolutionPass pass, const ConvolutionProblem& problem,
                                         MeasurementMemory& memory);

/// What the measurements hold for: the processor, its vector instructions, and the versions of the kernels.
std::string measured_machine();

}  // namespace purine::cpu
