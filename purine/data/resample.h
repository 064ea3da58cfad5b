// Resizing, cropping, mirroring and normalising in one pass over an image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "purine/data/image.h"

namespace purine::data {

/// What happens along one dimension of an image: the pixels [begin, begin + length) of the source, edges and
/// all, become `resized` pixels, of which [first, first + count) are wanted. Wanted pixels outside [0,
/// resized) are black. Example: an image 300 wide, its shorter side 200 resized to 100 and then cropped to
/// the middle 80: {0, 300, 150, 35, 80}.
struct ResampleAxis {
  double begin = 0;
  double length = 0;
  int resized = 0;
  int first = 0;
  int count = 0;
};

/// Distances between elements of the output, in elements.
struct OutputStrides {
  std::ptrdiff_t channel = 0;
  std::ptrdiff_t row = 0;
  std::ptrdiff_t column = 0;
};

/// Weights of the source pixels that make an output pixel along one dimension: a triangle around its centre,
/// as wide as two output pixels where it shrinks and as two source pixels where it grows, cut off at the
/// edges of the part that is resized, with sum 1. (What Pillow calls BILINEAR, and PyTorch bilinear with
/// antialias.)
class Taps {
 public:
  void prepare(const ResampleAxis& axis, int source_extent);

  /// Outputs [valid_begin, valid_end) of the wanted ones have taps, the others are black.
  int valid_begin() const { return valid_begin_; }
  int valid_end() const { return valid_end_; }
  /// The source pixels that any output needs.
  int source_begin() const { return source_begin_; }
  int source_end() const { return source_end_; }

  struct Span {
    int begin = 0;
    int count = 0;
    const float* weights = nullptr;
  };
  Span of(int output) const {
    const std::size_t i = static_cast<std::size_t>(output - valid_begin_);
    return {begin_[i], count_[i], weights_.data() + i * stride_};
  }

 private:
  int valid_begin_ = 0;
  int valid_end_ = 0;
  int source_begin_ = 0;
  int source_end_ = 0;
  std::size_t stride_ = 0;
  std::vector<int> begin_;
  std::vector<int> count_;
  std::vector<float> weights_;
  std::vector<double> exact_;
};

/// Storage that is used again from image to image.
struct ResampleWorkspace {
  Taps rows;
  Taps columns;
  std::vector<float> line;
};

/// Per channel of the output: value * scale + shift, of 8-bit values.
struct Normalisation {
  int channels = 0;
  std::array<float, 3> scale{};
  std::array<float, 3> shift{};
};

/// Writes rows.count x columns.count pixels of the resampled image, mirrored left to right if `flipped`. A
/// grey image gives all output channels the same value; otherwise image and output have equally many.
void resample(const Image& image, const ResampleAxis& rows, const ResampleAxis& columns, bool flipped,
              const Normalisation& normalisation, float* output, const OutputStrides& strides,
              ResampleWorkspace& workspace);

}  // namespace purine::data
